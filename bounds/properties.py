"""What a theorem may assume and what it may speak about: every hypothesis and every bounded quantity, in words, once.

``Property`` holds the hypotheses, ``IMPLIED`` what follows from what, ``Conclusion`` the bounded quantities and
``NEVER_ABOVE`` which of them is never larger than which.  Numbers (mu, L, omega ...) stay parameters of the bounds: a
property says what a parameter means.
"""

from __future__ import annotations

import enum


class Property(enum.Enum):
    """One hypothesis.

    Parameters
    ----------
    kind : str
        What it is about.
    words : str
        The hypothesis as a clause.
    """

    # the function that is minimised, and the workers' data
    SMOOTH = "problem", "F is L-smooth"
    BOUNDED_BELOW = "problem", "F is bounded below"
    EVERY_SMOOTH = "problem", "the function F_i of every worker is L-smooth"
    COORDINATE_SMOOTH = "problem", "F is smooth with a constant of its own in every coordinate"
    HESSIAN_ABOVE = "problem", "every Hessian of F is >= -rho"
    HESSIAN_LIPSCHITZ = "problem", "the Hessian of F is Lipschitz with the constant hessian_lipschitz"
    CONVEX = "problem", "F is convex"
    EVERY_CONVEX = "problem", "the function F_i of every worker is convex"
    SAMPLES_CONVEX_SMOOTH = "problem", "every sampled function is convex and L-smooth"
    STRONGLY_CONVEX = "problem", "F is mu-strongly convex"
    EVERY_STRONGLY_CONVEX = "problem", "the function F_i of every worker is mu-strongly convex"
    ONE_POINT_CONVEX = "problem", "<grad F(x), x - x*> >= mu |x - x*|^2 for every x"
    MINIMISER = "problem", "F attains its minimum"
    SAME_F = "problem", "all workers sample the same F"
    BOUNDED_HETEROGENEITY = "problem", "the gradients of the workers differ by at most heterogeneity in mean square"
    INTERPOLATION = "problem", "the gradient of every F_i vanishes at the minimiser of F"
    ISOTROPIC_QUADRATICS = "problem", "F may be any L |x - x*|^2/2 whose gap at the start is at most gap"
    HARDEST_CONVEX = "problem", "F is the worst convex L-smooth function for the method, with the worst noise"
    HARDEST_SMOOTH = "problem", "the F_i are the worst L-smooth functions for the method, with the worst noise"
    QUADRATIC_SUM = "problem", "F is the worst sum of one quadratic of every worker on the unit cube"

    # stochastic gradients
    UNBIASED_GRADIENTS = "noise", "stochastic gradients are unbiased, given the past"
    BOUNDED_VARIANCE = "noise", "the variance of one worker's gradient is at most sigma2 at every point"
    GROWING_VARIANCE = "noise", "the variance of one worker's gradient is at most sigma2 + noise_growth |grad F|^2"
    COORDINATE_VARIANCE = "noise", "coordinate j of one gradient has a standard deviation of at most sigma_j everywhere"
    LAYER_VARIANCE = "noise", "layer l of one worker's gradient has a variance of at most sigma2_l everywhere"
    INDEPENDENT_NOISE = "noise", "gradient noise is independent over workers and steps"
    BOUNDED_KURTOSIS = "noise", "E|n|^4 <= kurtosis sigma2^2 for the noise n of one worker's gradient at every point"
    EQUAL_THIRD_MOMENTS = "noise", "E|n|^2 n of the noise n is zero, or equal for all workers at a step"
    SYMMETRIC_NOISE = "noise", "the noise of every coordinate is unimodal and symmetric"
    SECOND_MOMENT = "noise", "E|g|^2 <= G^2 for every stochastic gradient of every worker"
    BOUNDED_COORDINATES = "noise", "no coordinate of a stochastic gradient is above gradient_max in absolute value"
    MEAN_SECOND_MOMENT = "noise", "E|mean of the workers' gradients|^2 <= G^2 at every step"
    MAX_NORM_MOMENT = "noise", "E[|g|_inf |g|_1] <= A + B |x - x*|^2 for every stochastic gradient"
    FULL_GRADIENTS = "noise", "gradients are exact: no noise"

    # the compressor
    UNBIASED = "operator", "the operator is unbiased and E|C(x) - x|^2 <= omega |x|^2, for every x"
    CONTRACTIVE = "operator", "E|C(x) - x|^2 <= alpha |x|^2 for every x"
    STRICTLY_CONTRACTIVE = "operator", "|C(x) - x|^2 <= alpha |x|^2 surely, for every x"
    CONTRACTIVE_ON_GAUSSIAN = "operator", "E|C(X) - X|^2 <= alpha E|X|^2 for an isotropic Gaussian X"
    CONTRACTIVE_ON_SPHERE = "operator", "E|C(X) - X|^2 <= alpha for X uniform on the unit sphere"
    STRICTLY_CONTRACTIVE_ON_SPARSE = "operator", "|C(x) - x|^2 <= alpha |x|^2 surely, for every k-sparse x"
    UNBIASED_STAGES = (
        "operator",
        "both stages are unbiased, E|C(x) - x|^2 <= omega1 |x|^2 in the first and omega2 |x|^2 in the second, every x",
    )
    EXACT_STAGES = (
        "operator",
        "both stages are unbiased, E|C(x) - x|^2 = omega1 |x|^2 in the first and omega2 |x|^2 in the second, every x",
    )
    IDEAL_STAGES = "operator", "both stages are unbiased, E|C(x) - x|^2 = |x|^2/(4^b - 1) at b bits per coordinate"
    SHARED_SCALE = "operator", "workers round at random to integers of one scale, which words of word_bits can sum"
    DITHERED_SHARED_SCALE = (
        "operator",
        "workers quantise with one step and a subtractive dither of their own, an ideal coder packs the sum",
    )
    MODULO_LATTICE = (
        "operator",
        "workers round to multiples of 2 distance/(2^word_bits - 1) with a shared dither and send integers modulo "
        "2^word_bits, and the receiver holds a vector within distance of theirs in every coordinate",
    )
    CORRELATED_BIT = "operator", "every worker rounds one number to an end of the range, stratified over the workers"
    OWNED_LONG_BLOCKS = (
        "operator",
        "long blocks through codes for random directions, by owners of shards who keep their own shard as it is",
    )
    GATHERED_LONG_BLOCKS = "operator", "long blocks through codes for random directions, to all workers"
    SELF_DELIMITING = "operator", "no message is the beginning of another"
    INDEPENDENT_MESSAGES = "operator", "given what they encode, the messages of workers and rounds are independent"
    HARDEST_UNBIASED = "operator", "the unbiased operators are the worst of their class and may depend on each other"
    HARDEST_CONTRACTIVE = "operator", "the contractive operators are the worst of their class"
    LAYERWISE_UNBIASED = "operator", "workers and master compress every layer on its own, without bias"
    TOPK_NEAR_MEAN = "operator", "top-k of the mean differs from the mean of the top-k by at most topk_gap eta |mean g|"
    AGGREGATE_CONTRACTS = "operator", "the aggregate of the messages contracts their mean by 1 - k/d, in expectation"
    SUPPORT = "operator", "any k of the d coordinates may be named (all equally likely, where a mean is meant)"
    SPHERICAL_COMPRESSION = "operator", "the operator is Spherical Compression, its key shared"
    SCALED_SPHERICAL_COMPRESSION = "operator", "the operator is Spherical Compression scaled to be unbiased, key shared"
    RANDOM_COVERING = "operator", "the outputs are a random covering of the sphere"
    SPARSE_DITHERING = "operator", "the operator is deterministic Sparse Dithering, alpha = nu, fields of real length"
    TENTH_SPARSE_DITHERING = "operator", "the operator is deterministic Sparse Dithering with alpha = nu = 1/10"
    WHOLE_SPARSE_DITHERING = "operator", "the operator is deterministic Sparse Dithering, alpha = nu, whole bits"
    CODED_SPARSE_DITHERING = "operator", "the operator is arithmetic-coded Sparse Dithering, alpha = nu"
    RANDOM_SPARSE_DITHERING = "operator", "the operator is randomised Sparse Dithering, fields of real length"
    COARSE_SPARSE_DITHERING = "operator", "the operator is randomised Sparse Dithering of step (1 + omega)/sqrt(d)"
    WHOLE_RANDOM_SPARSE_DITHERING = "operator", "the operator is randomised Sparse Dithering, fields of whole bits"
    DITHERED_QUANTISER = "operator", "a scalar quantiser with subtractive dither and an ideal entropy coder"
    WIENER_QUANTISER = "operator", "a dithered scalar quantiser, scaled to least error, with an ideal entropy coder"
    WIENER_LATTICE = "operator", "a dithered lattice quantiser, scaled to least error, with an ideal entropy coder"
    UNIFORM_QUANTISER = "operator", "a uniform scalar quantiser, decoded to means, with an ideal entropy coder"
    UNBIASED_INNER_PRODUCTS = (
        "operator",
        "message, shared key and query give an unbiased estimate of the inner product of the query and the vector",
    )
    UNIFORM_EDEN = "operator", "the operator is EDEN with its constant unbiased scale, under a uniform rotation"
    ROTATED_LLOYD_MAX = (
        "operator",
        "the operator is EDEN with either unbiased scale, under a uniform rotation",
    )
    ONE_BIT_RABITQ = "operator", "the operator is RaBitQ with one bit per coordinate, under a uniform rotation"
    TURBOQUANT_MSE = "operator", "the operator is TurboQuant for squared error, under a uniform rotation"
    TURBOQUANT_PROD = (
        "operator",
        "the operator is TurboQuant for inner products, uniform rotation, Gaussian sign matrix",
    )
    RANDOM_BLOCK_CODE = "operator", "the codewords are floor(2^bits) points of the best sphere code"

    # what is encoded
    GAUSSIAN_SOURCE = "source", "coordinates are independent Gaussian with one variance"
    LAYERED_GAUSSIAN_SOURCE = "source", "coordinates are independent Gaussian, of one variance in a layer"
    LAPLACE_SOURCE = "source", "coordinates are independent with a Laplace law"
    GENERALISED_GAUSSIAN_SOURCE = "source", "coordinates are independent with a generalised Gaussian law"
    STUDENT_SOURCE = "source", "coordinates are independent with a Student law"
    MIXTURE_SOURCE = "source", "coordinates are independent mixtures of two centred Gaussian laws"
    SPARSE_SOURCE = "source", "coordinates are independent, exactly zero or Gaussian"
    FINITE_VARIANCE_SOURCE = "source", "coordinates are independent with one law of finite variance"
    GAUSSIAN_SAMPLES = "source", "every client holds one sample of N(theta, sigma2 I), theta arbitrary"
    RANDOM_DIRECTIONS = "source", "every client holds an independent uniformly random direction"

    GAUSSIAN_VECTORS = "source", "every worker holds a vector of its own, all coordinates independent, one Gaussian law"
    UNIFORM_WORDS = (
        "source",
        "every worker holds independent uniform integers of word_bits bits, which are added modulo 2^word_bits",
    )
    INDEPENDENT_VECTORS = "source", "every worker holds a vector of its own, all coordinates independent, one variance"

    # the algorithm
    LOCAL_SGD = "method", "workers start together, make tau SGD steps of one eta a round, then average their models"
    SCHEDULED_LOCAL_SGD = "method", "local SGD whose eta and tau change between rounds"
    MIXED_LOCAL_SGD = "method", "local SGD that multiplies by a symmetric doubly stochastic matrix where it averages"
    MOMENTUM_LOCAL_SGD = "method", "local SGD with momentum between rounds, none inside"
    COMPRESSED_LOCAL_SGD = "method", "local SGD that averages compressed changes of the round"
    SCHEDULED_COMPRESSED_LOCAL_SGD = "method", "compressed local SGD whose eta and tau change between rounds"
    MEMORY_LOCAL_SGD = "method", "local SGD whose workers send compressed changes and keep what they did not send"
    OVERLAPPED_LOCAL_SGD = (
        "method",
        "local SGD whose averages arrive in_flight steps after they were asked for, while the workers go on",
    )
    FALLING_STEP_LOCAL_SGD = "method", "local SGD of step sizes eta_t = 4/(mu (a + t))"
    STALE_SGD = "method", "SGD on one model with gradients of earlier models, at most staleness steps late"
    SCAFFOLD = "method", "SCAFFOLD with its step sizes: local SGD with control variates, participants drawn uniformly"
    FEDNOVA = "method", "FedNova with equal numbers of local steps and equal weights"
    SLOW_MOMENTUM = "method", "SlowMo with slow learning rate 1, step size sqrt(m/K), on local SGD"
    FEDADAM = "method", "FedAdam: the server's Adam, without momentum, takes the mean change of tau local steps"
    FEDADAGRAD = (
        "method",
        "FedAdagrad: the server's Adagrad, without momentum, takes the mean change of tau local steps",
    )
    FEDYOGI = "method", "FedYogi: the server's Yogi, without momentum, takes the mean change of tau local steps"
    FEDPAQ = "method", "local SGD of step size 1/(L sqrt(K)) that averages quantised changes"
    TUNED_STEP = "method", "the learning rate is the one that the constants give"
    COMPRESSED_GRADIENTS = "method", "SGD on the mean of the workers' compressed gradients"
    QUANTISED_GRADIENTS = "method", "SGD on the mean of the workers' gradients, rounded by QSGD with s levels"
    TERNARY_GRADIENTS = "method", "SGD on the mean of the workers' gradients, rounded by TernGrad"
    LAYERWISE_GRADIENTS = "method", "SGD that compresses layer by layer, at the workers and at the master"
    PARTICIPANTS_MEAN = "method", "the mean of participants drawn uniformly stands for that of all workers"
    GATHERED_MEAN = "method", "every worker sends its compressed vector to all, who take the mean"
    TWO_SHOT_MEAN = (
        "method",
        "workers send compressed shards to their owners, who send the compressed means of the shards to all",
    )
    RING_MEAN = "method", "partial sums go round a ring, compressed at every hop, then the compressed mean to all"
    TREE_MEAN = "method", "partial sums go up a binary tree, compressed at every edge, then the compressed mean to all"
    EXACT_SUM = "method", "every worker ends with the exact sum, surely"
    WORD_MEAN = "method", "integers are summed on the way"
    RANDOM_PLACES = "method", "the workers take their places in a uniformly random order, afresh for every exchange"
    BEST_SPLIT = "method", "the bits are split between the stages as best they can, with real-valued rates"
    TWO_SHOT_LOCAL_SGD = "method", "local SGD that averages the changes of the round in two shots"
    TWO_SHOT_DIANA = "method", "DIANA with shift step 1/(1 + omega1) whose mean goes out compressed"
    DIANA = "method", "DIANA with shift step 1/(1 + omega)"
    EXACT_SHIFTS = "method", "the shifts start at the gradients, which the first round averages uncompressed"
    LOCODL = "method", "LoCoDL: local steps of probability 1 - p between compressed exchanges, its step sizes"
    ADIANA = "method", "accelerated DIANA"
    MARINA = "method", "MARINA, which starts with a full gradient"
    EF21 = "method", "EF21, whose memory starts at the gradients"
    EF21_SGD = "method", "EF21 on stochastic gradients, whose memory starts at the full gradients"
    MEMORY = "method", "messages are compressed with an error memory that starts at zero"
    MEMORY_SGD = "method", "SGD with error memory at every worker"
    TOPK_MEMORY_SGD = "method", "top-k SGD with error memory at every worker"
    GLOBAL_TOPK_SGD = "method", "global top-k SGD with memory"
    SIGN_SGD = "method", "signSGD of step 1/sqrt(|L|_1 K), on mini-batches of K calls"
    MAJORITY_VOTE = "method", "signSGD with majority vote of step sqrt(gap/(|L|_1 K)), on mini-batches of K calls"
    NEGATING_WORKERS = "method", "the faulty workers send the opposite of their own sign and do not collude"
    ELECTION = "method", "workers vote on independently drawn partitions, liars know all votes and send the wrong sign"
    SURE_ELECTION = "method", "election coding by full majorities and single partitions, where liars send anything"
    PROXSKIP = "method", "ProxSkip: control variates, communication with probability p"
    ANY_INTERMITTENT = "method", "tau gradients of every worker between two rounds, used in any way"
    ONLY_COMPRESSED = "method", "every message after the first passes through the compressor"
    SURE_ACCURACY = "method", "the accuracy is reached surely, not only in expectation"
    MEAN_ACCURACY = "method", "the accuracy is reached in expectation over a key"

    # time
    CONSTANT_TIMES = "time", "every step and every averaging takes the same time"
    WHOLE_ROUNDS = "time", "the run is a whole number of rounds"
    FRESH_ROUND_TIMES = "time", "the time of a round has the given mean, whatever the rounds before it were"
    TIMES_APART = "time", "times are independent of the gradients"
    LAST_ROUND_FINISHED = "time", "the run ends with the first averaging at or after the budget"
    ENDED_ROUNDS = "time", "the run counts the rounds that have ended by the budget, the first in any case"

    def __init__(self, kind: str, words: str) -> None:
        self.kind, self.words = kind, words


P = Property

IMPLIED: tuple[tuple[frozenset[Property], frozenset[Property]], ...] = tuple(
    (frozenset(premises), frozenset(conclusions))
    for premises, conclusions in (
        # convexity and smoothness
        ({P.EVERY_STRONGLY_CONVEX}, {P.EVERY_CONVEX, P.STRONGLY_CONVEX}),
        ({P.STRONGLY_CONVEX}, {P.CONVEX, P.MINIMISER, P.ONE_POINT_CONVEX}),
        ({P.SAMPLES_CONVEX_SMOOTH}, {P.EVERY_CONVEX, P.EVERY_SMOOTH}),
        ({P.EVERY_CONVEX}, {P.CONVEX}),
        ({P.CONVEX}, {P.HESSIAN_ABOVE}),  # with rho = 0
        ({P.SMOOTH}, {P.HESSIAN_ABOVE}),  # with rho = L
        ({P.EVERY_SMOOTH}, {P.SMOOTH}),
        ({P.MINIMISER}, {P.BOUNDED_BELOW}),
        ({P.SAME_F}, {P.BOUNDED_HETEROGENEITY, P.INTERPOLATION}),  # with heterogeneity = 0
        ({P.SAME_F, P.CONVEX}, {P.EVERY_CONVEX}),
        ({P.SAME_F, P.STRONGLY_CONVEX}, {P.EVERY_STRONGLY_CONVEX}),
        ({P.SAME_F, P.SMOOTH}, {P.EVERY_SMOOTH}),
        # noise
        ({P.FULL_GRADIENTS}, {P.UNBIASED_GRADIENTS, P.BOUNDED_VARIANCE, P.INDEPENDENT_NOISE}),  # with sigma2 = 0
        ({P.FULL_GRADIENTS}, {P.SYMMETRIC_NOISE, P.COORDINATE_VARIANCE, P.LAYER_VARIANCE}),
        ({P.BOUNDED_VARIANCE}, {P.GROWING_VARIANCE}),  # with noise_growth = 0
        ({P.SECOND_MOMENT}, {P.MEAN_SECOND_MOMENT}),
        # the worst problems are problems of their class
        (
            {P.HARDEST_CONVEX},
            {P.SAME_F, P.CONVEX, P.SMOOTH, P.MINIMISER, P.UNBIASED_GRADIENTS, P.BOUNDED_VARIANCE, P.INDEPENDENT_NOISE},
        ),
        (
            {P.HARDEST_SMOOTH},
            {P.EVERY_SMOOTH, P.BOUNDED_BELOW, P.UNBIASED_GRADIENTS, P.BOUNDED_VARIANCE, P.INDEPENDENT_NOISE},
        ),
        # operators
        ({P.STRICTLY_CONTRACTIVE}, {P.CONTRACTIVE, P.STRICTLY_CONTRACTIVE_ON_SPARSE}),
        ({P.CONTRACTIVE}, {P.CONTRACTIVE_ON_GAUSSIAN, P.CONTRACTIVE_ON_SPHERE}),
        ({P.HARDEST_UNBIASED}, {P.UNBIASED}),
        ({P.HARDEST_CONTRACTIVE}, {P.CONTRACTIVE}),
        ({P.SPHERICAL_COMPRESSION}, {P.STRICTLY_CONTRACTIVE, P.SELF_DELIMITING}),
        ({P.SCALED_SPHERICAL_COMPRESSION}, {P.UNBIASED, P.SELF_DELIMITING}),
        ({P.RANDOM_COVERING}, {P.STRICTLY_CONTRACTIVE, P.SELF_DELIMITING}),
        ({P.SPARSE_DITHERING}, {P.STRICTLY_CONTRACTIVE, P.SELF_DELIMITING}),
        ({P.TENTH_SPARSE_DITHERING}, {P.SPARSE_DITHERING}),
        ({P.WHOLE_SPARSE_DITHERING}, {P.STRICTLY_CONTRACTIVE, P.SELF_DELIMITING}),
        ({P.CODED_SPARSE_DITHERING}, {P.STRICTLY_CONTRACTIVE, P.SELF_DELIMITING}),
        ({P.RANDOM_SPARSE_DITHERING}, {P.UNBIASED, P.SELF_DELIMITING}),
        ({P.COARSE_SPARSE_DITHERING}, {P.UNBIASED, P.SELF_DELIMITING}),
        ({P.WHOLE_RANDOM_SPARSE_DITHERING}, {P.UNBIASED, P.SELF_DELIMITING}),
        ({P.UNIFORM_EDEN}, {P.UNBIASED_INNER_PRODUCTS, P.SELF_DELIMITING}),
        ({P.ONE_BIT_RABITQ}, {P.UNBIASED_INNER_PRODUCTS, P.SELF_DELIMITING}),
        ({P.TURBOQUANT_PROD}, {P.UNBIASED_INNER_PRODUCTS, P.SELF_DELIMITING}),
        ({P.EXACT_STAGES}, {P.UNBIASED_STAGES}),
        ({P.OWNED_LONG_BLOCKS}, {P.SELF_DELIMITING}),
        ({P.GATHERED_LONG_BLOCKS}, {P.SELF_DELIMITING}),
        # sources
        ({P.GAUSSIAN_VECTORS}, {P.INDEPENDENT_VECTORS}),
        ({P.GAUSSIAN_SOURCE}, {P.LAYERED_GAUSSIAN_SOURCE, P.FINITE_VARIANCE_SOURCE}),
        *(
            ({law}, {P.FINITE_VARIANCE_SOURCE})
            for law in (
                P.LAPLACE_SOURCE,
                P.GENERALISED_GAUSSIAN_SOURCE,
                P.STUDENT_SOURCE,
                P.MIXTURE_SOURCE,
                P.SPARSE_SOURCE,
            )
        ),
        # methods that contain others
        (
            {P.LOCAL_SGD},
            {P.SCHEDULED_LOCAL_SGD, P.MIXED_LOCAL_SGD, P.MOMENTUM_LOCAL_SGD, P.ANY_INTERMITTENT},
        ),  # one eta and tau; zeta = 0; factor 0
        ({P.COMPRESSED_LOCAL_SGD}, {P.SCHEDULED_COMPRESSED_LOCAL_SGD}),
        ({P.MEMORY_SGD}, {P.MEMORY, P.ONLY_COMPRESSED}),
        ({P.QUANTISED_GRADIENTS}, {P.COMPRESSED_GRADIENTS}),
        ({P.TERNARY_GRADIENTS}, {P.COMPRESSED_GRADIENTS}),
        ({P.COMPRESSED_GRADIENTS}, {P.ONLY_COMPRESSED}),
        ({P.EF21}, {P.ONLY_COMPRESSED}),
        ({P.SURE_ACCURACY}, {P.MEAN_ACCURACY}),
        # time
        ({P.CONSTANT_TIMES}, {P.FRESH_ROUND_TIMES, P.TIMES_APART}),
    )
)


class Conclusion(enum.Enum):
    """What a bound is about; the value is its words."""

    # one message
    LONGEST_MESSAGE = "length of the longest message, all bits counted"
    LONGEST_DIRECTION = "log2 of the number of messages about the direction x/|x|, the norm not counted"
    MEAN_MESSAGE = "mean length of a message over the randomness, the largest over x, all bits counted"
    MEAN_DIRECTION = "mean length over the randomness of a message about x/|x|, the largest over x"
    GAUSSIAN_MEAN_MESSAGE = "mean length of a message over an isotropic Gaussian x, all bits counted"
    SPHERE_MEAN_DIRECTION = "mean length of a message over a uniformly random direction x, the norm not counted"
    SUPPORT_LENGTH = "length of a fixed-length name of the support, or the mean over all supports"
    CLIENT_MEAN_MESSAGE = "mean length of one client's message, averaged over the clients"
    RECEIVED_RATE = "bits per coordinate that a worker receives, on average over the workers"
    FIRST_STAGE_BITS = "bits per coordinate of the first stage at which the error of the mean is least"
    SUM_RATE = "bits per coordinate of the coded sum of the workers' integers"
    MEAN_ERROR = "E|result - mean|^2 for the mean of the vectors that the workers hold"
    # one inner product
    QUERY_ERROR = "d E(<q, Q(x)> - <q, x>)^2 / (|q|^2 |x|^2) averaged over the directions of q, the largest over x"
    WORST_QUERY_ERROR = "d E(<q, Q(x)> - <q, x>)^2 / (|q|^2 |x|^2), the largest over q and x"
    # long blocks
    LAYER_INFORMATION = "bits of a layer with error water_level a coordinate: no code is below, long blocks attain them"
    INFORMATION_RATE = "information rate R(D): bits per coordinate that long blocks cannot beat"
    CODE_RATE = "bits per coordinate of the code, on average over the source"
    EXCESS_RATE = "bits per coordinate of the code above R(D) of its source"
    EXCESS_OVER_GAUSSIAN = "bits per coordinate of the code above the Gaussian rate at its error"
    BLOCK_LENGTH = "log2 of the number of codewords of a fixed-length block code"
    BLOCK_MISS = "probability that a block exceeds its distortion"
    # a whole run
    RUN_BITS = "bits received in the longest run"
    ALL_WORKERS_BITS = "bits exchanged by all workers in a run"
    MEAN_SQUARE_ERROR = "mean square error, the largest over what is estimated"
    GRADIENT = "average over the local steps of E|grad F|^2 at the mean model"
    WEIGHTED_GRADIENT = "average with weights eta over the local steps of E|grad F|^2 at the mean model"
    GRADIENT_PER_MEAN_STEP = "mean over runs of the summed |grad F|^2 at the mean model, over the mean number of steps"
    LOCAL_GRADIENT = "average over workers and local steps of E|grad F|^2 at the local models"
    ROUND_GRADIENT = "average over the rounds of E|grad F|^2 at the model with which a round starts"
    L1_GRADIENT = "square of the average over the steps of E|grad F|_1"
    GAP = "average over the local steps of E F - inf F at the mean model"
    GAP_OF_AVERAGE = "E F - inf F at the average of the mean models over the local steps"
    GAP_OF_WEIGHTED_AVERAGE = "E F - inf F at the average with weights (a + t)^2 of the mean models"
    GAP_OF_OUTPUT = "E F - inf F at what the method puts out"
    DISTANCE = "E|x - x*|^2 at the last step"
    LYAPUNOV = "mean of the method's Lyapunov function at the last step"
    STEPS_TO_GRADIENT = "steps until the average of E|grad F|^2 over the steps is at most epsilon"
    STEPS_TO_DISTANCE = "steps until E|x - x*|^2 is at most epsilon times its start"
    STEPS_TO_LYAPUNOV = (
        "steps until the method's Lyapunov function, not the distance, is at most epsilon times its start"
    )
    ERROR_MEMORY = "E|e|^2 of the error memory at any step"
    VOTE_ERROR = "probability that the vote on one coordinate is wrong"
    ELECTION_LOAD = "partitions that a worker holds, on average over the workers"
    OTHER_BOUND = "the least value of another bound over real tau, not the error itself"

    @property
    def words(self) -> str:
        """The bounded quantity as a noun phrase."""
        return self.value


C = Conclusion

NEVER_ABOVE: dict[Conclusion, tuple[Conclusion, ...]] = {  # direct; a quantity -> those that are never smaller
    C.SPHERE_MEAN_DIRECTION: (C.MEAN_DIRECTION,),
    C.MEAN_DIRECTION: (C.LONGEST_DIRECTION, C.MEAN_MESSAGE),  # unit vectors are among the x
    C.LONGEST_DIRECTION: (C.LONGEST_MESSAGE,),
    C.GAUSSIAN_MEAN_MESSAGE: (C.MEAN_MESSAGE,),
    C.MEAN_MESSAGE: (C.LONGEST_MESSAGE,),
    C.INFORMATION_RATE: (C.CODE_RATE,),
    C.QUERY_ERROR: (C.WORST_QUERY_ERROR,),
    C.GAP_OF_OUTPUT: (C.GAP_OF_AVERAGE,),  # put out the average
    C.GAP_OF_AVERAGE: (C.GAP,),  # Jensen; every bound on it needs a convex F
}

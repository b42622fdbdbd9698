/* A user-space Ethernet switch on TAP devices: rate, one-way delay, jitter and loss between m namespaces.

   usage: switch RATE_BIT_PER_S DELAY_NS JITTER_NS LOSS_2_32 SEED QUEUE_BYTES MTU PRIORITY STATISTICS_FD NETWORK_FD...

   One TAP device "eth0" is made in the namespace of every NETWORK_FD and lives as long as this process.  A frame
   from port i to port j is lost with probability LOSS_2_32 / 2^32, else it arrives DELAY_NS plus up to JITTER_NS
   later, never before an earlier frame of i to j, and then waits for its turn on the link to j, which sends
   RATE_BIT_PER_S (0: no limit).  A frame that would make the queue of j longer than QUEUE_BYTES is dropped.
   STATISTICS_FD is a file of 64-bit counters that the parent maps: for every pair (i, j) the bytes, frames, lost and
   dropped frames, then frames sent, and the sum and the maximum of their lateness in ns.
   It ends when standard input is closed, that is at the latest when the parent ends, or after a signal.  */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 256, READS = 64, HEADER = 14, FIXED_ARGUMENTS = 10 };
enum { BYTES, FRAMES, LOST, DROPPED, KINDS };

struct frame {
    uint64_t due, number;      /* ns, and order of equal times */
    uint32_t length;
    uint16_t to;
    uint16_t on_link;          /* 0: travelling, 1: on the link to its receiver */
    unsigned char data[];
};

static struct frame **heap;
static size_t held, room;
static uint64_t rate, delay_ns, jitter_ns, loss, state, queue_limit, counted;
static uint64_t link_free[PORTS], queued[PORTS], *last_arrival, *statistics;
static int ports, taps[PORTS];

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t draw(void) {   /* splitmix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int earlier(const struct frame *a, const struct frame *b) {
    return a->due < b->due || (a->due == b->due && a->number < b->number);
}

static void push(struct frame *f) {
    if (held == room) {
        room = room ? 2 * room : 1024;
        heap = realloc(heap, room * sizeof *heap);
        if (!heap) fail("realloc");
    }
    size_t i = held++;
    for (; i && earlier(f, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = f;
}

static struct frame *pop(void) {
    struct frame *top = heap[0], *f = heap[--held];
    size_t i = 0, child;
    for (; (child = 2 * i + 1) < held; i = child) {
        if (child + 1 < held && earlier(heap[child + 1], heap[child])) child++;
        if (!earlier(heap[child], f)) break;
        heap[i] = heap[child];
    }
    heap[i] = f;
    return top;
}

static uint64_t *pair(int from, int to) { return statistics + KINDS * (from * ports + to); }

static void accept_frame(int from, int to, const unsigned char *data, uint32_t length, uint64_t time) {
    uint64_t *count = pair(from, to);
    count[BYTES] += length;
    count[FRAMES]++;
    if (loss && (draw() >> 32) < loss) { count[LOST]++; return; }
    if (queued[to] + length > queue_limit) { count[DROPPED]++; return; }
    struct frame *f = malloc(sizeof *f + length);
    if (!f) fail("malloc");
    uint64_t arrival = time + delay_ns;
    if (jitter_ns) arrival += (uint64_t)(((unsigned __int128)draw() * (jitter_ns + 1)) >> 64);
    uint64_t *last = last_arrival + from * ports + to;
    if (arrival < *last) arrival = *last;
    *last = arrival;
    *f = (struct frame){.due = arrival, .number = counted++, .length = length, .to = (uint16_t)to};
    memcpy(f->data, data, length);
    queued[to] += length;
    push(f);
}

static void read_port(int from, size_t largest) {
    unsigned char data[65536 + HEADER];
    for (int i = 0; i < READS; i++) {
        ssize_t length = read(taps[from], data, largest);
        if (length < HEADER) return;
        uint64_t time = now();
        int to = data[4] << 8 | data[5];
        if (data[0] & 1) {     /* to all */
            for (int j = 0; j < ports; j++)
                if (j != from) accept_frame(from, j, data, (uint32_t)length, time);
        } else if (to < ports && to != from) {
            accept_frame(from, to, data, (uint32_t)length, time);
        }
    }
}

static void deliver(void) {
    uint64_t time = now(), *total = statistics + KINDS * ports * ports;
    while (held && heap[0]->due <= time) {
        struct frame *f = pop();
        if (!f->on_link && rate) {
            uint64_t begin = link_free[f->to] > f->due ? link_free[f->to] : f->due;
            f->due = link_free[f->to] = begin + f->length * 8000000000u / rate;
            f->on_link = 1;
            push(f);
            continue;
        }
        time = now();
        uint64_t late = time > f->due ? time - f->due : 0;
        if (write(taps[f->to], f->data, f->length) == (ssize_t)f->length) {
            total[0]++;
            total[1] += late;
            if (late > total[2]) total[2] = late;
        }
        queued[f->to] -= f->length;
        free(f);
    }
}

static int open_tap(int namespace) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    if (setns(namespace, 0)) fail("setns");
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0) fail("/dev/net/tun");
    strcpy(request.ifr_name, "eth0");
    if (ioctl(tap, TUNSETIFF, &request)) fail("TUNSETIFF");
    return tap;
}

int main(int count, char **argument) {
    if (count <= FIXED_ARGUMENTS || count > FIXED_ARGUMENTS + PORTS) { errno = EINVAL; fail("usage"); }
    signal(SIGINT, SIG_IGN);   /* the parent decides what an interrupt means */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    rate = strtoull(argument[1], NULL, 10);
    delay_ns = strtoull(argument[2], NULL, 10);
    jitter_ns = strtoull(argument[3], NULL, 10);
    loss = strtoull(argument[4], NULL, 10);
    state = strtoull(argument[5], NULL, 10);
    queue_limit = strtoull(argument[6], NULL, 10);
    int mtu = atoi(argument[7]), priority = atoi(argument[8]);
    ports = count - FIXED_ARGUMENTS;
    size_t bytes = (size_t)(KINDS * ports * ports + 3) * sizeof *statistics;
    statistics = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argument[9]), 0);
    last_arrival = calloc((size_t)ports * ports, sizeof *last_arrival);
    if (statistics == MAP_FAILED || !last_arrival) fail("set-up");
    struct pollfd watched[PORTS + 1];
    for (int i = 0; i < ports; i++) {
        taps[i] = open_tap(atoi(argument[FIXED_ARGUMENTS + i]));
        watched[i] = (struct pollfd){.fd = taps[i], .events = POLLIN};
    }
    watched[ports] = (struct pollfd){.fd = 0, .events = POLLIN};
    if (priority) sched_setscheduler(0, SCHED_RR, &(struct sched_param){priority});
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timespec left = {0, 0}, *timeout = NULL;
        if (held) {
            uint64_t time = now(), due = heap[0]->due, wait = due > time ? due - time : 0;
            left = (struct timespec){(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)};
            timeout = &left;
        }
        int n = ppoll(watched, (nfds_t)ports + 1, timeout, NULL);
        if (n < 0 && errno != EINTR) fail("ppoll");
        for (int i = 0; n > 0 && i < ports; i++)
            if (watched[i].revents) read_port(i, (size_t)mtu + HEADER);
        char ignored[64];
        if (n > 0 && watched[ports].revents && read(0, ignored, sizeof ignored) <= 0) return 0;
        deliver();
    }
}

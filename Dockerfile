# ratedist on a CPU:  docker build -t ratedist . && docker run --rm ratedist ratedist bits --d 1e9 --omega 1
FROM python:3.13-slim
# a C compiler builds the switch of shaped networks when a run first asks for one; iproute2 sets its links up
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev iproute2 && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home ratedist
WORKDIR /home/ratedist/source
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY bounds bounds
COPY operators operators
COPY ratedist ratedist
COPY gpu_validation gpu_validation
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt ".[laws,serve,validate]"
# beside the installed package, so that nothing is compiled in a container; an image for x86-64 serves its processors
RUN cd / && python -m operators.precompile $(test "$(uname -m)" = x86_64 && echo --portable)
USER ratedist
WORKDIR /home/ratedist
CMD ["ratedist", "--help"]

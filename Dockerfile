# The program `ferroflow` alone in an image: static, without a C library, a shell or anything else.
#
#     docker build -t ferroflow .
#     docker run --rm -v "$PWD/model:/model:ro" ferroflow run /model --input_exprs 'x=np.ones((1, 8))'
#
# What Vulkan and NVIDIA's driver have to be loaded for is left out (feature `wgpu`, `cuda`): a static
# program loads no libraries.
FROM rust:1.90-slim AS build
RUN rustup target add x86_64-unknown-linux-musl
WORKDIR /source
COPY . .
RUN cargo build --locked --profile dist --bin ferroflow --target x86_64-unknown-linux-musl \
    --no-default-features --features cli,codec,linalg,signal,text

FROM scratch
COPY --from=build /source/target/x86_64-unknown-linux-musl/dist/ferroflow /ferroflow
USER 65534
ENTRYPOINT ["/ferroflow"]

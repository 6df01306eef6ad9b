# An image that exists only if the tests passed: docker build -t attnproof .
# It fuzzes by default; docker run attnproof attnproof impls runs the tool.
FROM debian:12
COPY . /attnproof
WORKDIR /attnproof
RUN ./run test
ENTRYPOINT ["./run"]
CMD ["fuzz"]

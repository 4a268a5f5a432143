# Targets run from fast to slow; `make ci` stops at the first failure.
GO       ?= go
BIN      := bin/quorate
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 10s
ci-full: FUZZTIME = 4s
LINT     := $(GO) tool -modfile=tools/go.mod golangci-lint
# Modules of their own: what they depend on never enters the product's go.mod.
COMPAT   := test/compat
PEERS    := test/bench

.PHONY: build test race lint fuzz e2e compat chaos bench bench-peers cases-full gen check-gen fix ci ci-full deps vet

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/quorate

vet:
	$(GO) vet ./...

# Unit, property and scenario tests, fuzz seeds, the shape of the repository, and the example with a real client that a
# user's own tests start from.
test: vet
	$(GO) test -timeout 170s ./...
	cd $(COMPAT) && $(GO) test -timeout 120s ./example/...

# The simulator is one goroutine: the detector has nothing to find there.
race:
	$(GO) test -race -short -timeout 15m $$($(GO) list ./... | grep -v /test/sim)

lint:
	$(LINT) run

fuzz:
	GO="$(GO)" FUZZTIME=$(FUZZTIME) sh internal/lint/fuzz.sh

# The same cases against embed and against the binary over TCP.
e2e: build
	QUORATE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -timeout 10m ./test/e2e/...

# Unchanged Go and Java clients and mqadmin against the binary.
compat: build deps
	cd $(COMPAT) && QUORATE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -timeout 20m ./...

# kill -9, SIGSTOP, full disks and failing writes against the binary; needs root.
chaos: build deps
	QUORATE_BIN=$(CURDIR)/$(BIN) QUORATE_CHAOS=1 $(GO) test -count=1 -timeout 20m ./test/chaos/...

# docs/cases.md at the size of the reports; takes long, and needs some GB of disk.
cases-full:
	QUORATE_CASES=full $(GO) test -count=1 -timeout 120m -run 'TestCase' ./store ./broker ./remoting ./namesrv

bench: build
	cd $(PEERS) && QUORATE_BIN=$(CURDIR)/$(BIN) $(GO) run .

bench-peers: build
	cd $(PEERS) && QUORATE_BIN=$(CURDIR)/$(BIN) $(GO) run . -peers

gen:
	$(GO) run ./internal/gen/requestcodes > docs/request-codes.md

check-gen: gen
	git diff --exit-code -- docs/request-codes.md

fix:
	$(LINT) fmt
	$(GO) mod tidy
	cd $(COMPAT) && $(GO) mod tidy
	cd $(PEERS) && $(GO) mod tidy
	$(MAKE) gen

# Installs by name what the targets above need and the machine lacks.
deps:
	sh .ci/deps

ci: export CI := 1
ci: deps build vet check-gen test lint e2e

# The rest: long, or not yet shown to hold on every machine. TestTooManyOpenFiles of chaos fails when the log needs a file
# while connections hold every descriptor.
ci-full: ci race fuzz compat chaos

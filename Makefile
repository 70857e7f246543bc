# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= v0.1.0-dev
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
# Major and minor version.
version_words = $(subst ., ,$(VERSION:v%=%))
version_package := k8s.io/component-base/version
LDFLAGS := -s -w -X $(version_package).gitVersion=$(VERSION)+$(COMMIT) -X $(version_package).gitCommit=$(COMMIT) \
	-X $(version_package).gitMajor=$(word 1,$(version_words)) -X $(version_package).gitMinor=$(word 2,$(version_words))
GO_TEST_FLAGS ?=
# What runs tests, and checks that all of them ran. The gate repeats those that fail (hack/gate.sh).
GO_TEST ?= hack/tested.sh

# Tests are linked without what only debuggers read, which takes half the time. Traces have their lines all the same.
test_flags := -vet=off -ldflags='-s -w' $(GO_TEST_FLAGS)

# Programs and tests are compiled with the same flags, so that what they have in common is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath

# run_suites runs tests with the programs of the control plane: flags of go test, packages, variables. Tests are not vetted here and
# in the unit tests, because hack/verify-vet.sh vets all packages, with more analyzers.
define run_suites
@binaries=$$(hack/ensure-binaries.sh --tests); \
JOBSET_INSTALL=no JOBSET_BINARIES=$$binaries hack/alone.sh env $(3) $(GO_TEST) $(test_flags) -count=1 -timeout 60m $(1) $(2)
endef

.PHONY: help
help: ## List the targets.
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Start a local cluster and watch a training JobSet fail, restart and run to completion.
	@hack/demo.sh

programs := apiserver:jobset-apiserver controller:jobset-controller kubectl-jobset:kubectl-jobset restart-agent:jobset-restart-agent

# What is up to date in _output/programs is not linked again. Programs are renamed into both directories, so that none is half written, and those in bin/
# may run meanwhile.
.PHONY: build
build: ## Build our programs into bin/.
	@mkdir -p bin _output/programs
	exec 9>_output/programs.lock; flock 9; \
	building=$$(mktemp -d -p _output); trap 'rm -rf "$$building"' EXIT; \
	GOTMPDIR="$$PWD/$$building" GOGC=400 GOMEMLIMIT=2GiB go build -ldflags '$(LDFLAGS)' -o _output/programs/ $(foreach program,$(programs),./cmd/$(firstword $(subst :, ,$(program)))) 9>&-; \
	for program in $(programs); do \
		cmp -s "_output/programs/$${program%:*}" "bin/$${program#*:}" || { cp "_output/programs/$${program%:*}" "$$building/" && mv -f "$$building/$${program%:*}" "bin/$${program#*:}"; }; \
	done

# Images and the plugin's archives depend on the commit, the version of Go and these variables only.
.PHONY: images
images: ## Build the images into _output/images, without a container engine.
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' REGISTRY='$(REGISTRY)' PLATFORMS='$(PLATFORMS)' hack/images.sh build

.PHONY: push
push: ## Push the images that were built to the registry REGISTRY.
	@REGISTRY='$(REGISTRY)' PLAIN_HTTP='$(PLAIN_HTTP)' hack/images.sh push

.PHONY: plugin
plugin: ## Pack kubectl-jobset for all platforms, with a manifest for Krew, into _output/plugin.
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' PLUGIN_URL='$(PLUGIN_URL)' hack/images.sh plugin

.PHONY: chart
chart: ## Pack the Helm chart into _output/chart.
	@hack/images.sh chart

release_variables = VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' PLATFORMS='$(PLATFORMS)' PLUGIN_URL='$(PLUGIN_URL)' REGISTRY='$(REGISTRY)' PLAIN_HTTP='$(PLAIN_HTTP)' \
	SIGNING_KEY='$(SIGNING_KEY)' SIGNING_PASSWORD_FILE='$(SIGNING_PASSWORD_FILE)' PUBLIC_KEY='$(PUBLIC_KEY)' RELEASE='$(RELEASE)'

.PHONY: docs
docs: ## Build the documentation of VERSION as pages into _output/docs, and check all links.
	@VERSION='$(VERSION)' DOCS_OUTPUT='$(DOCS_OUTPUT)' hack/docs.sh

.PHONY: docs-test
docs-test: ## Read all pages of the documentation in a browser, at three widths.
	$(GO_TEST) -C hack/site $(test_flags) -count=1 -timeout 30m ./sitetest/...

.PHONY: release
release: ## Build all files of the release VERSION from the commit into _output/release, signed by SIGNING_KEY.
	@$(release_variables) hack/images.sh release

.PHONY: verify-release
verify-release: ## Check the signature, by PUBLIC_KEY, and the files of the release in _output/release, or in RELEASE.
	@$(release_variables) hack/images.sh verify

.PHONY: publish
publish: ## Push the release to the registry REGISTRY, and write manifests and chart for it into _output/published.
	@$(release_variables) hack/images.sh publish

.PHONY: install-from-source
install-from-source: ## Build the images, push them to REGISTRY, and install the overlay OVERLAY into the cluster of kubectl.
	@$(release_variables) OVERLAY='$(OVERLAY)' hack/images.sh install

.PHONY: up
up: ## Start the local cluster; starts only what does not run.
	@hack/cluster.sh up

.PHONY: down
down: ## Stop the local cluster and remove its data.
	@hack/cluster.sh down

node_cluster := CLUSTER_DIR=$(CURDIR)/.cluster-nodes CLUSTER_NODES=0

.PHONY: node-up
node-up: ## Start a cluster of two real nodes, with our programs as pods. Needs root.
	@$(node_cluster) CLUSTER_REAL_NODES=2 hack/cluster.sh up

.PHONY: node-down
node-down: ## Stop the cluster of real nodes, and remove all that is left of it.
	@$(node_cluster) hack/cluster.sh down

# These tests mostly wait for kubelets, so more of them run at a time than there are cores.
.PHONY: node-e2e
node-e2e: build ## Run workloads in real containers on two real nodes. Needs root.
	$(call run_suites,-p 1 -parallel 4,./test/nodes/...)

.PHONY: kueue-e2e
kueue-e2e: build ## Run our kinds in queues of the real Kueue, also in two clusters with MultiKueue. Its first build takes minutes.
	hack/ensure-peers.sh kueue >/dev/null
	$(call run_suites,-p 1,./test/peers/kueue/...)

.PHONY: trainer-e2e
trainer-e2e: build ## Run TrainJobs of the real Kubeflow Trainer. Its first build takes minutes.
	hack/ensure-peers.sh trainer >/dev/null
	$(call run_suites,,./test/peers/trainer/...)

.PHONY: takeover-e2e
takeover-e2e: build ## Move sets from the controllers of upstream to our server and back; as root, also real containers. Its first build takes minutes.
	hack/ensure-peers.sh jobset >/dev/null
	$(call run_suites,-p 1,./test/peers/takeover/...)
	$(call run_suites,-run TestTakeOver,./test/peers/takeover,JOBSET_TAKEOVER_SERVERS=3)

.PHONY: lws-e2e
lws-e2e: build ## Run JobSets beside the real LeaderWorkerSet controller of upstream, to which its sets are left. Its first build takes minutes.
	hack/ensure-peers.sh lws >/dev/null
	$(call run_suites,,./test/peers/lws/...)

.PHONY: dns-e2e
dns-e2e: build ## Look up names of pods in CoreDNS while they are replaced. JOBSET_DNS_LOOKUPS is the number of look-ups.
	$(call run_suites,,./test/dns/...)

.PHONY: helm-e2e
helm-e2e: ## Install, upgrade and uninstall the Helm chart on real nodes. Needs root.
	$(call run_suites,,./test/helm/...)

.PHONY: test
test: ## Run the gate: the unit tests, and the tests on a control plane that every change must pass.
	@hack/gate.sh

# One suite at a time, and one control plane at a time: what runs beside others fails for want of a CPU.
gate_packages := ./test/integration/apiserver/... ./test/parity/ ./test/parity/controller/... ./test/e2e/... ./test/loss/... ./test/faults/...

.PHONY: gate
gate: build
	$(call run_suites,-p 1,$(gate_packages),CLUSTER_BIN=$(CURDIR)/bin)

.PHONY: long-suites
long-suites: build
	$(call run_suites,-p 1 -timeout 90m,$(SUITES),CLUSTER_BIN=$(CURDIR)/bin JOBSET_TESTS=long)

.PHONY: long
long: ## Run all tests that the gate leaves out, part by part, or PART='e2e faults'; hack/long.sh lists the parts. For more than an hour, and as root.
	@hack/long.sh $(PART)

# The heaps of most tests are so small that the garbage collector would take a fifth of their CPU.
unit: export GOGC = 400
unit: export GOMEMLIMIT = 2GiB

# The modules of tools have few packages each, so they are tested beside the others.
.PHONY: unit
unit: ## Run the unit tests.
	@$(MAKE) --no-print-directory -j2 unit-modules unit-packages

# Some packages wait for etcd or for real time, so one package more than there are processors is tested at a time.
.PHONY: unit-packages
unit-packages:
	$(GO_TEST) -p $$(($$(nproc) + 1)) $(test_flags) -timeout 20m ./pkg/... ./cmd/... ./hack/... ./test/bench/... ./test/ceilings/... ./test/docs/... ./test/hostile/... ./test/localcluster/... ./test/framework/... ./test/history/... ./test/simulation/...

# The modules of tools, with -count=1 where tests read files of the checkout outside of their module: go test does not see that these have changed.
.PHONY: unit-modules
unit-modules:
	$(GO_TEST) -C hack/images $(test_flags) ./...
	$(GO_TEST) -C hack/helm $(test_flags) -count=1 ./...
	$(GO_TEST) -C hack/prometheus $(test_flags) -count=1 ./...
	$(GO_TEST) -C hack/vulnerabilities $(test_flags) ./...
	$(GO_TEST) -C hack/site $(test_flags) ./docsite/...
	$(GO_TEST) -C hack/markdown $(test_flags) ./...
	$(GO_TEST) -C hack/gitops $(test_flags) ./...

.PHONY: stress
stress: ## Run the gate's suites ROUNDS times, or PART=unit or all, by turns on an idle and a busy machine, and sum up all rounds on this tree.
	@hack/stress.sh $(or $(PART),gate) $(ROUNDS)

long_rounds := JOBSET_TESTS=long JOBSET_ALL_CASES=1 JOBSET_DOCTOR_ALL=1 JOBSET_E2E_FORGET=1 JOBSET_START_ORDERS=all JOBSET_GANG_ROUNDS=50 \
	JOBSET_FAULTS_ROUNDS=5 JOBSET_FAULTS_HISTORIES=20 JOBSET_LOSS_SECONDS=120

.PHONY: rounds
rounds: build ## Run all cases of all tests, and the long form of those that have one, for hours.
	$(long_rounds) $(GO_TEST) $(test_flags) -count=1 -timeout 0 ./pkg/apiserver/...
	$(call run_suites,-p 1 -timeout 0,./test/e2e/... ./test/integration/... ./test/parity/... ./test/loss/... ./test/faults/...,$(long_rounds) CLUSTER_BIN=$(CURDIR)/bin)
	hack/hostile.sh --full

.PHONY: soak
soak: kueue-e2e trainer-e2e takeover-e2e lws-e2e rounds ## Run our kinds beside the real Kueue and Trainer, and take over from upstream, all long rounds, and a million random histories of every controller, or HISTORIES=N, for hours.
	hack/soak.sh $(HISTORIES)

.PHONY: integration
integration: ## Run our server behind a real kube-apiserver.
	$(call run_suites,-p 1,./test/integration/...,JOBSET_TESTS=long)

.PHONY: parity
parity: ## Check every row of upstream's examples and tests.
	$(call run_suites,-p 1,./test/parity/...,JOBSET_TESTS=long)

.PHONY: e2e
e2e: build ## Drive a whole cluster with kubectl, and break things in it.
	$(call run_suites,-p 1,./test/e2e/... ./test/faults/... ./test/loss/...,JOBSET_TESTS=long)

.PHONY: upgrade
upgrade: ## Upgrade running sets from the programs of the commit FROM, or before the first release, to those of this tree, and back.
	hack/upgrade.sh $(FROM)

.PHONY: upgrade-smoke
upgrade-smoke: ## Upgrade a few running sets from the programs before the first release, and back, in a few minutes.
	hack/upgrade.sh --short

.PHONY: matrix
matrix: ## Run tests on every supported version of Kubernetes and on the oldest etcd, and write docs/versions.md, for hours.
	hack/matrix.sh $(VERSIONS)

# What is given on the command line is passed on to each of the three, and hack/bench.sh refuses what it cannot be used with. The KUBECONFIG of the
# environment is ignored, so that no cluster is used by accident.
bench_settings = BENCH_PEERS='$(PEERS)' BENCH_KUBECONFIG='$(if $(findstring command,$(origin KUBECONFIG)),$(KUBECONFIG))'

.PHONY: bench
bench: ## Measure time, CPU, memory, requests and bytes, about an hour and a half.
	$(bench_settings) hack/bench.sh full $(ARGS)

.PHONY: bench-compare
bench-compare: ## Compare JobSets with bare Jobs in the cluster of KUBECONFIG=FILE, or in a new local one; with PEERS=1 beside upstream's controllers, too.
	$(bench_settings) hack/bench.sh compare $(ARGS)

.PHONY: bench-smoke
bench-smoke: ## Check numbers of requests and bytes, in a few minutes.
	$(bench_settings) hack/bench.sh smoke $(ARGS)

.PHONY: hostile
hostile: build ## Send hostile requests to programs that may use 1 GiB, in about two minutes.
	hack/hostile.sh

.PHONY: generate
generate: ## Regenerate all generated code, and what follows from the rules and dashboards of Prometheus and from the manifests.
	hack/update-codegen.sh
	go run ./hack/monitoring .
	go run -C hack/helm . generate

.PHONY: verify
verify: ## Run every check that needs no cluster: generated code, imports, format, vet, lint, modules, vulnerabilities.
	hack/verify.sh

.PHONY: verify-manifests
verify-manifests: ## Check the manifests against a real control plane.
	hack/verify-manifests.sh

.PHONY: lint
lint: ## Run vet and the linters.
	hack/verify-vet.sh
	hack/verify-lint.sh

.PHONY: clean
clean: down ## Remove what was built here; the cache of control-plane binaries stays.
	rm -rf bin _output

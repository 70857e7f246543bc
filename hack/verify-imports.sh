#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks who imports whom. Rules on direct imports are about what a package may say; rules on all dependencies are about
# what may end up in it by any way. Tests are exempt: they may look at a package from outside. The simplest rules are in
# .golangci.yml, which depguard checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C GOWORK=off GOFLAGS=-mod=readonly

module=$(go list -m)
readonly apis="${module}/pkg/apis"
failed=0

# Regular expressions, anchored at both ends. A version directory of a group holds its versioned types.
readonly hub="${apis}/[a-z]+|${apis}/[a-z]+/(fuzzer|install|validation)(/.*)?"
readonly version="${apis}/[a-z]+/v[0-9][0-9a-z]*"
readonly helper="${version}/helper"
readonly reasons="${apis}/generic/reasons"
readonly gates="${apis}/[a-z]+/(gates|podgroups)"
readonly server="${module}/pkg/(apiserver|registry)(/.*)?"
readonly generated="${module}/pkg/generated(/.*)?"
readonly controller="${module}/pkg/controller(/.*)?"
readonly plugin="${module}/pkg/kubectl(/.*)?"
readonly plan="${module}/pkg/controller/[a-z]+/plan(/[a-z]+)?"

# Lines "package import" and "package dependency", of hand-written and generated code, without tests.
# With -e, because a forbidden import is named here better than by the import cycle that it may cause.
packages=$(go list -e -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} import {{.}}{{"\n"}}{{end}}{{range .Deps}}{{$p}} dependency {{.}}{{"\n"}}{{end}}' ./pkg/... ./cmd/...)
imports=$(awk '$2 == "import" {print $1, $3}' <<<"${packages}")
dependencies=$(awk '$2 == "dependency" {print $1, $3}' <<<"${packages}")

# forbid <packages> <imports> <rule>: reports each direct import of the one by the other.
forbid() {
  report "$3" < <(awk -v from="^($1)$" -v to="^($2)$" '$1 ~ from && $2 ~ to' <<<"${imports}")
}

# allow_only <packages> <imports> <rule>: reports each direct import of the one that is none of the other.
allow_only() {
  report "$3" < <(awk -v from="^($1)$" -v to="^($2)$" '$1 ~ from && $2 !~ to' <<<"${imports}")
}

report() {
  local package import
  while read -r package import; do
    echo "${package} must not import ${import}: $1" >&2
    failed=1
  done
}

# forbid_any_way <packages> <imports> <rule>: the same through any number of other packages.
forbid_any_way() {
  local package dependency
  while read -r package dependency; do
    echo "${package} must not depend on ${dependency} ($(importers "${package}" "${dependency}")): $3" >&2
    failed=1
  done < <(awk -v from="^($1)$" -v to="^($2)$" '$1 ~ from && $2 ~ to' <<<"${dependencies}")
}

# importers <package> <dependency>: which packages of this module, among those that the package uses, import it.
importers() {
  local found
  found=$(awk -v p="$1" -v d="$2" '
    NR == FNR { if ($1 == p) uses[$2] = 1; next }
    $2 == d && ($1 == p || $1 in uses) { print $1 }' <(echo "${dependencies}") <(echo "${imports}") | paste -sd' ')
  if [[ -n "${found}" ]]; then echo "imported by ${found}"; else echo "through other modules"; fi
}

# The hub and the versions.
forbid "${hub}" "${module}/pkg/(generated|controller|apiserver|registry|features)(/.*)?|k8s.io/(client-go|apiserver)(/.*)?" \
  "API types and their validation know values only, not servers, clients or gates"
forbid "${apis}/[a-z]+|${apis}/[a-z]+/validation(/.*)?" "${version}" \
  "internal types and their validation do not know how they look on the wire"
forbid "${version}" "${module}/pkg/(generated|controller|apiserver|registry|features)(/.*)?|k8s.io/(client-go|apiserver)(/.*)?" \
  "versioned types know the internal ones and nothing that serves or runs them"
forbid_any_way "${helper}" "${module}/pkg/(generated|controller|apiserver|registry|features|kubectl)(/.*)?|k8s.io/(client-go|apiserver|component-base)(/.*)?" \
  "facts about objects are pure functions over versioned types"
allow_only "${apis}/podtemplate/validation" "k8s.io/(api|apimachinery)/.*|k8s.io/utils/ptr|[a-z]+(/[a-z0-9]+)*" \
  "what every kind embeds knows no kind"
allow_only "${generated}" "${generated}|${version}|k8s.io/.*|sigs.k8s.io/structured-merge-diff/.*|[a-z]+(/[a-z0-9]+)*" \
  "generated code knows the versioned types and the Kubernetes libraries"

# The server.
forbid_any_way "${module}/pkg/registry(/.*)?" "${controller}|${module}/pkg/apiserver(/.*)?" \
  "the server wires the registry, the registry knows neither the server nor the controller"
# Everything that belongs to one group or kind, and the parts of the server that serve any.
readonly kinds="${apis}/([a-fh-z][a-z]*|g[a-df-z][a-z]*)(/.*)?|${module}/pkg/(registry/[a-fh-z][a-z]*|registry/g[a-df-z][a-z]*|admission)(/.*)?"
readonly host="${module}/pkg/(apiserver(/(events|mainapi|options|requests|run|selfcheck|startup|store|tls|webhook)(/.*)?)?|registry/generic(/.*)?)"
forbid "${host}" "${kinds}" \
  "the parts that serve any kind name none; pkg/apiserver/apigroups lists the groups"
forbid_any_way "${module}/pkg/apiserver(/.*)?" "${controller}" \
  "server and controller share API types only"

# The controller.
forbid_any_way "${controller}" "${server}" \
  "the controller reaches the server through its API only"
forbid "${controller}" "${hub}" \
  "controllers speak the versioned types; internal ones belong to the server"
forbid "${module}/pkg/controller/host/(loop|plan|children|queue|consistency|namespaces|informers)(/.*)?" \
  "${module}/pkg/controller/(disaggregatedset|endpointslices|jobset|leaderworkerset|podgroup|sequentialjob)(/.*)?" \
  "what the controllers of all kinds share names no kind"
forbid "${module}/pkg/controller/host/(loop|plan)" "${version}" "the loop runs objects of any kind"
forbid "${module}/pkg/controller/host/(children|queue|consistency|namespaces|informers)" "${module}/pkg/controller/host/loop" \
  "the loop uses what controllers share, and is not used by it"
allow_only "${plan}" \
  "${version}|${helper}|${reasons}|${gates}|${plan}|k8s.io/api/.*|k8s.io/apimachinery/pkg/(api|apis|labels|fields|runtime/schema|selection|types|util)(/.*)?|k8s.io/utils/(ptr|set)|k8s.io/component-helpers/resource|[a-z]+(/[a-z0-9]+)*" \
  "deciding uses values only: versioned types and facts about them, k8s.io/api and value packages of apimachinery"

# The plugin. It shows what the controller would create, and so uses its decisions.
forbid_any_way "${plugin}" "${server}" \
  "the plugin reaches servers through their API only"
forbid "${plugin}" "${hub}|${module}/pkg/controller|${module}/pkg/controller/(options|[a-z]+|host/[a-oq-z][a-z]*)" \
  "the plugin speaks the versioned types and runs no controller"

# The agent. It runs in every pod of a set, so its memory counts: the types of the Kubernetes API alone take as much as all else of it.
readonly agent="${module}/(pkg/restartagent|cmd/restart-agent)"
forbid_any_way "${agent}" "${module}/pkg/(apis|generated|controller|apiserver|registry|features|kubectl)(/.*)?|k8s.io/(api|component-base)(/.*)?" \
  "the agent has types of its own for the few fields that it reads"

# Commands.
forbid "${module}/cmd(/.*)?" "${apis}(/.*)?|${module}/pkg/registry(/.*)?|${generated}|${plan}" \
  "commands build a cobra command from the options of a server or controller, and run it"

# time.Now and its kin are in a package that deciding needs for durations.
clocks=$(grep -rnE --include '*.go' --exclude '*_test.go' '\btime\.(Now|Since|Until|After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)\(|metav1\.Now\(' \
  pkg/controller/*/plan 2>/dev/null || true)
if [[ -n "${clocks}" ]]; then
  sed 's/$/: must not ask for the time, which is part of the input of deciding/' <<<"${clocks}" >&2
  failed=1
fi

# Everybody.
forbid_any_way "${module}/(pkg|cmd)(/.*)?" "k8s.io/kubernetes(/.*)?|sigs.k8s.io/jobset(/.*)?" \
  "neither may come in through others"

if [[ ${failed} -ne 0 ]]; then
  echo "imports: the rules are in hack/verify-imports.sh" >&2
  exit 1
fi
echo "imports: ok"

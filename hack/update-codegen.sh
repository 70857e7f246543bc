#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates everything that follows from the API types: protobuf, deepcopy, defaults, conversions, OpenAPI, apply
# configurations, clientset, listers and informers.
#
# All generators work on a scratch copy of the hand-written sources, laid out by import path as the protobuf generator
# wants it, and the results are copied over the tree at the end. So earlier results cannot influence new ones, and a run
# that fails leaves the tree as it was. Packages are found by their `+k8s:...-gen` tags.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "${root}"
export LC_ALL=C GOWORK=off GOFLAGS=-mod=readonly

# Packages of other modules whose types our types embed, whatever way. Generators read them and must not write there.
readonly foreign_protobuf="k8s.io/api/core/v1 k8s.io/api/apps/v1 k8s.io/api/batch/v1"
readonly foreign_machinery="
k8s.io/apimachinery/pkg/util/intstr
k8s.io/apimachinery/pkg/api/resource
k8s.io/apimachinery/pkg/runtime/schema
k8s.io/apimachinery/pkg/runtime
k8s.io/apimachinery/pkg/apis/meta/v1
"
readonly foreign_openapi="
k8s.io/api/apps/v1
k8s.io/api/autoscaling/v1
k8s.io/api/batch/v1
k8s.io/api/core/v1
k8s.io/api/scheduling/v1alpha3
k8s.io/apimachinery/pkg/api/resource
k8s.io/apimachinery/pkg/apis/meta/v1
k8s.io/apimachinery/pkg/runtime
k8s.io/apimachinery/pkg/types
k8s.io/apimachinery/pkg/util/intstr
k8s.io/apimachinery/pkg/version
"
# Their apply configurations, which client-go publishes.
readonly foreign_apply="
k8s.io/api/apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy:k8s.io/client-go/applyconfigurations/apps/v1
k8s.io/api/batch/v1.JobTemplateSpec:k8s.io/client-go/applyconfigurations/batch/v1
k8s.io/api/core/v1.PersistentVolumeClaim:k8s.io/client-go/applyconfigurations/core/v1
k8s.io/api/core/v1.Container:k8s.io/client-go/applyconfigurations/core/v1
k8s.io/api/core/v1.PodTemplateSpec:k8s.io/client-go/applyconfigurations/core/v1
"

module=$(go list -m)
scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
readonly source_tree="${scratch}/src"
readonly work="${source_tree}/${module}"
readonly header="${work}/hack/boilerplate.go.txt"
readonly generated="${module}/pkg/generated"

step() { echo "codegen: $*" >&2; }

# tagged <tag>: import paths of the packages whose doc.go carries the tag.
tagged() {
  grep -rlE --include doc.go "^// \+$1(=|$)" "${work}/pkg/apis" | sort | while read -r file; do
    echo "${module}/$(dirname "${file#"${work}/"}")"
  done
}

# with_clients: import paths of the versioned packages of which a type is served under a path of its own.
with_clients() {
  local package
  for package in $(tagged k8s:protobuf-gen); do
    ! grep -qrx --include '*.go' '// +genclient' "${source_tree}/${package}" || echo "${package}"
  done
}

# joined <prefix> <separator> <word>...: the words, each with the prefix, in one line.
joined() {
  local prefix=$1 separator=$2 out='' word
  shift 2
  for word in "$@"; do out+="${out:+${separator}}${prefix}${word}"; done
  echo "${out}"
}

module_dir() { (cd "$1" && go mod download -json "$2") | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'; }

is_generated() {
  case "$1" in
    pkg/generated/* | */zz_generated.*.go | */generated.pb.go | */generated.proto | hack/api-violations.list) return 0 ;;
    *) return 1 ;;
  esac
}

# Paths of sources, of results too, relative to a tree.
files_of() {
  (cd "$1" && find pkg/apis pkg/generated hack/api-violations.list -type f ! -name '*_test.go' ! -path '*/testdata/*' \
    2>/dev/null || true) | sort
}

prepare() {
  local file
  mkdir -p "${work}/hack"
  cp go.mod go.sum "${work}"
  cp -R hack/boilerplate.go.txt hack/models-schema "${work}/hack"
  files_of . | while read -r file; do
    is_generated "${file}" || install -D -m 0644 "${file}" "${work}/${file}"
  done
  cp -R "${work}/pkg/apis" "${scratch}/before"
}

protobuf() {
  local gogo api machinery
  gogo=$(module_dir "${root}/hack/tools" github.com/gogo/protobuf)
  api=$(module_dir "${work}" k8s.io/api)
  machinery=$(module_dir "${work}" k8s.io/apimachinery)
  # shellcheck disable=SC2086,SC2046 # lists of words
  go-to-protobuf --go-header-file "${header}" --output-dir "${source_tree}" \
    --apimachinery-packages "$(joined - , ${foreign_machinery})" \
    --packages "$(joined - , ${foreign_protobuf}),$(joined '' , $(tagged k8s:protobuf-gen))" \
    --proto-import "k8s.io/api=${api}" --proto-import "k8s.io/apimachinery=${machinery}" \
    --proto-import "github.com/gogo/protobuf=${gogo}" --proto-import "${gogo}/protobuf"
}

helpers() {
  # shellcheck disable=SC2046 # lists of words
  {
    deepcopy-gen --go-header-file "${header}" --output-file zz_generated.deepcopy.go $(tagged k8s:deepcopy-gen)
    defaulter-gen --go-header-file "${header}" --output-file zz_generated.defaults.go $(tagged k8s:defaulter-gen)
    conversion-gen --go-header-file "${header}" --output-file zz_generated.conversion.go $(tagged k8s:conversion-gen)
  }
}

# Rule violations in packages of others cannot be fixed here, so the report keeps those in our packages only.
openapi() {
  local package readonly_packages=()
  for package in ${foreign_openapi} time; do readonly_packages+=(--readonly-pkg "${package}"); done
  # shellcheck disable=SC2086,SC2046 # lists of words
  openapi-gen --go-header-file "${header}" --output-dir "${work}/pkg/generated/openapi" \
    --output-pkg "${generated}/openapi" --output-file zz_generated.openapi.go \
    --output-model-name-file zz_generated.model_name.go --report-filename "${scratch}/violations" \
    "${readonly_packages[@]}" ${foreign_openapi} $(tagged k8s:openapi-gen)
  grep -F ",${module}/" "${scratch}/violations" | sort >"${work}/hack/api-violations.list" || true
}

clients() {
  local versioned="${generated}/clientset/versioned" packages inputs=() package
  packages=$(with_clients)
  for package in ${packages}; do inputs+=(--input "${package#"${module}/pkg/apis/"}"); done
  step "models schema"
  go run ./hack/models-schema >"${scratch}/models.json"
  step "apply configurations"
  # shellcheck disable=SC2086,SC2046 # lists of words
  applyconfiguration-gen --go-header-file "${header}" --output-dir "${work}/pkg/generated/applyconfiguration" \
    --output-pkg "${generated}/applyconfiguration" --openapi-schema "${scratch}/models.json" \
    --external-applyconfigurations "$(joined '' , ${foreign_apply})" ${packages}
  step "clientset"
  client-gen --go-header-file "${header}" --output-dir "${work}/pkg/generated/clientset" \
    --output-pkg "${generated}/clientset" --clientset-name versioned --prefers-protobuf \
    --apply-configuration-package "${generated}/applyconfiguration" --input-base "${module}/pkg/apis" "${inputs[@]}"
  step "listers and informers"
  # shellcheck disable=SC2086 # list of words
  {
    lister-gen --go-header-file "${header}" --output-dir "${work}/pkg/generated/listers" \
      --output-pkg "${generated}/listers" ${packages}
    informer-gen --go-header-file "${header}" --output-dir "${work}/pkg/generated/informers" \
      --output-pkg "${generated}/informers" --versioned-clientset-package "${versioned}" \
      --listers-package "${generated}/listers" ${packages}
  }
}

# Copies what is new or different, removes what is generated no more. The protobuf generator adds missing field numbers
# to hand-written types; only then are those written back.
publish() {
  local file
  files_of "${work}" | while read -r file; do
    if ! is_generated "${file}"; then
      cmp -s "${work}/${file}" "${scratch}/before/${file#pkg/apis/}" && continue
      step "protobuf tags added in ${file}"
    fi
    cmp -s "${work}/${file}" "${file}" || install -D -m 0644 "${work}/${file}" "${file}"
  done
  files_of . | while read -r file; do
    ! is_generated "${file}" || [[ -e "${work}/${file}" ]] || rm -f "${file}"
  done
  [[ ! -d pkg/generated ]] || find pkg/generated -type d -empty -delete
}

# Not within an assignment of several: each failure has to stop the script.
tools=$(hack/ensure-tools.sh)
protoc=$(hack/ensure-protoc.sh)
PATH="${tools}:${protoc}:$(go env GOROOT)/bin:${PATH}"
prepare
cd "${work}"
step "protobuf"
protobuf
step "deepcopy, defaults, conversions"
helpers
step "OpenAPI"
openapi
clients
cd "${root}"
publish
step "checking that the module cache is untouched"
go mod verify >&2

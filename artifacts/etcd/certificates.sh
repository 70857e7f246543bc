#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes an authority, a certificate for the members of the etcd in this directory and one for jobset-apiserver, all good for ten years, and stores
# them in the Secrets jobset-etcd-tls and jobset-apiserver-etcd with kubectl. The key of the authority is kept nowhere: to replace the certificates,
# run this again, and restart members and servers. Between the two restarts old and new do not trust each other; plan an outage.
set -euo pipefail

readonly namespace=jobset-system service=jobset-etcd days=3650
dir=$(mktemp -d)
trap 'rm -rf "${dir}"' EXIT
cd "${dir}"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

# sign <name> <extensions>
sign() {
  key "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "${days}" -extfile <(echo "$2") -out "$1.crt" 2>/dev/null
}

# secret <name> <certificate>
secret() {
  kubectl --namespace "${namespace}" create secret generic "$1" --from-file=ca.crt --from-file="tls.crt=$2.crt" --from-file="tls.key=$2.key" \
    --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts -f -
}

key ca.key
openssl req -x509 -new -key ca.key -subj /CN=jobset-etcd-ca -days "${days}" -out ca.crt

names=DNS:localhost,IP:127.0.0.1
for member in 0 1 2; do
  names+=",DNS:${service}-${member}.${service}.${namespace}.svc"
done
sign member "subjectAltName=${names}
extendedKeyUsage=serverAuth,clientAuth"
sign jobset-apiserver extendedKeyUsage=clientAuth

secret jobset-etcd-tls member
secret jobset-apiserver-etcd jobset-apiserver

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestBadInputCostsOneLine(t *testing.T) {
	tier.OnRequest(t, "starts a server for each mistake")
	cases := map[string]struct {
		flags func(f fixture) []string
		// omit names flags of the valid command line that the case leaves out.
		omit []string
		// want are texts of the line: the flag, what is wrong, and what to do.
		want []string
	}{
		"no storage is chosen": {
			omit: []string{"data-dir"},
			want: []string{"--data-dir: must be set to a persistent directory", "or set --etcd-servers"},
		},
		"two storages are chosen": {
			flags: func(fixture) []string { return []string{"--etcd-servers=http://127.0.0.1:2379"} },
			want:  []string{"--data-dir: must not be set together with --etcd-servers", "remove one"},
		},
		"the data directory is temporary": {
			omit: []string{"allow-ephemeral-data"},
			want: []string{"--data-dir", "is a temporary directory", "use a persistent directory", "--allow-ephemeral-data"},
		},
		"the data directory is in memory": {
			flags: func(fixture) []string { return []string{"--data-dir=/dev/shm/jobset"} },
			omit:  []string{"allow-ephemeral-data", "data-dir"},
			want:  []string{"--data-dir", "/dev/shm", "use a persistent directory"},
		},
		"the path of the data directory is too long for sockets": {
			flags: func(f fixture) []string {
				return []string{"--data-dir=" + filepath.Join(f.t.TempDir(), strings.Repeat("x", 100))}
			},
			omit: []string{"data-dir"},
			want: []string{"--data-dir", "use a shorter path"},
		},
		"the data directory is a file": {
			flags: func(f fixture) []string { return []string{"--data-dir=" + f.write("file", "")} },
			omit:  []string{"data-dir"},
			want:  []string{"--data-dir", "not a directory", "can read and write"},
		},
		"every API group is switched off": {
			flags: func(fixture) []string {
				return []string{"--runtime-config=jobset.x-k8s.io/v1alpha2=false,batch.jobset-apiserver.io/v1alpha1=false,leaderworkerset.x-k8s.io/v1=false"}
			},
			want: []string{"--runtime-config: must leave a resource on", "group/version=true"},
		},
		"an unknown API group is switched off": {
			flags: func(fixture) []string { return []string{"--runtime-config=batch/v1=false"} },
			want:  []string{"--runtime-config", "unknown api groups batch/v1"},
		},
		"the quota of the embedded etcd is too small": {
			flags: func(fixture) []string { return []string{"--embedded-etcd-quota-bytes=1"} },
			want:  []string{"--embedded-etcd-quota-bytes: must be at least"},
		},
		"the embedded StatefulSet was scaled": {
			flags: func(fixture) []string { return []string{"--pod-name=jobset-apiserver-1"} },
			want:  []string{"--pod-name: jobset-apiserver-1 has ordinal 1", "only ordinal 0 may run", "scale the StatefulSet to 1"},
		},
		"the manifests of another storage were applied": {
			flags: func(fixture) []string { return []string{"--storage=external"} },
			want:  []string{"--storage: this installation began with the external storage", "apply the manifests"},
		},
		"the port is in use": {
			flags: func(f fixture) []string {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					f.t.Fatal(err)
				}
				f.t.Cleanup(func() { listener.Close() })
				return []string{fmt.Sprintf("--secure-port=%d", listener.Addr().(*net.TCPAddr).Port)}
			},
			omit: []string{"secure-port"},
			want: []string{"--secure-port", "address already in use", "choose another port"},
		},
		"the port is switched off": {
			flags: func(fixture) []string { return []string{"--secure-port=0"} },
			omit:  []string{"secure-port"},
			want:  []string{"--secure-port: must be between 1 and 65535"},
		},
		"the kubeconfig is missing": {
			flags: func(f fixture) []string { return []string{"--kubeconfig=" + f.missing()} },
			omit:  []string{"kubeconfig"},
			want:  []string{"--kubeconfig", "no such file", "give a file that this process can read"},
		},
		"the kubeconfig is not given outside of a cluster": {
			omit: []string{"kubeconfig"},
			want: []string{"--kubeconfig", "give a kubeconfig for the main cluster when running outside of it"},
		},
		"the kubeconfig is garbage": {
			flags: func(f fixture) []string { return []string{"--kubeconfig=" + f.write("kubeconfig", "{{")} },
			omit:  []string{"kubeconfig"},
			want:  []string{"--kubeconfig", "give a valid kubeconfig"},
		},
		"the authentication kubeconfig is missing": {
			flags: func(f fixture) []string { return []string{"--authentication-kubeconfig=" + f.missing()} },
			want:  []string{"--authentication-kubeconfig", "no such file"},
		},
		"a feature gate is unknown": {
			flags: func(fixture) []string { return []string{"--feature-gates=Teleport=true"} },
			want:  []string{"--feature-gates", "unrecognized feature gate: Teleport"},
		},
		"a feature gate is locked": {
			flags: func(fixture) []string { return []string{"--feature-gates=TLSOptions=false"} },
			want:  []string{"--feature-gates", "TLSOptions", "locked"},
		},
		"a flag is unknown": {
			flags: func(fixture) []string { return []string{"--teleport"} },
			want:  []string{"unknown flag: --teleport"},
		},
		"an argument is given": {
			flags: func(fixture) []string { return []string{"serve"} },
			want:  []string{`"serve"`, "takes flags only"},
		},
		"the audit policy is missing": {
			flags: func(f fixture) []string { return []string{"--audit-policy-file=" + f.missing()} },
			want:  []string{"--audit-policy-file", "no such file"},
		},
		"the audit policy is garbage": {
			flags: func(f fixture) []string {
				return []string{"--audit-log-path=-", "--audit-policy-file=" + f.write("policy.yaml", "kind: Nonsense")}
			},
			want: []string{"--audit-policy-file", "correct the audit flags"},
		},
		"the serving certificate is missing": {
			flags: func(f fixture) []string {
				return []string{"--tls-cert-file=" + f.missing(), "--tls-private-key-file=" + f.missing()}
			},
			want: []string{"--tls-cert-file", "no such file"},
		},
		"the serving certificate lacks its key": {
			flags: func(f fixture) []string { return []string{"--tls-cert-file=" + f.write("tls.crt", "")} },
			want:  []string{"--tls-cert-file: must be set together with --tls-private-key-file"},
		},
		"the key belongs to another certificate": {
			flags: func(f fixture) []string {
				one, other := f.t.TempDir(), f.t.TempDir()
				_, cert, _, err := f.authority().WriteServer(one)
				if err != nil {
					f.t.Fatal(err)
				}
				_, _, key, err := f.authority().WriteServer(other)
				if err != nil {
					f.t.Fatal(err)
				}
				return []string{"--tls-cert-file=" + cert, "--tls-private-key-file=" + key}
			},
			want: []string{"--tls-cert-file", "private key does not match", "--tls-private-key-file"},
		},
		"the key of the self-signed authority is missing": {
			flags: func(f fixture) []string {
				dir := f.t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "ca.crt"), f.authority().CA(), 0o600); err != nil {
					f.t.Fatal(err)
				}
				return []string{"--cert-dir=" + dir}
			},
			omit: []string{"cert-dir"},
			want: []string{"--cert-dir: a new serving certificate is due", "ca.key is missing: put it back"},
		},
		"front proxies and clients have one authority": {
			flags: func(f fixture) []string {
				ca := f.write("ca.crt", string(f.authority().CA()))
				return []string{"--client-ca-file=" + ca, "--requestheader-client-ca-file=" + ca}
			},
			want: []string{"--requestheader-allowed-names: is empty", "set the names of the front proxies", "or use two authorities"},
		},
		"the certificate directory cannot be made": {
			flags: func(f fixture) []string { return []string{"--cert-dir=" + filepath.Join(f.write("file", ""), "certs")} },
			omit:  []string{"cert-dir"},
			want:  []string{"--cert-dir", "use a directory that this process can write to"},
		},
		"the encryption configuration is garbage": {
			flags: func(f fixture) []string {
				return []string{"--encryption-provider-config=" + f.write("config.yaml", "{")}
			},
			want: []string{"--encryption-provider-config", "correct the file"},
		},
		"the storage media type is unknown": {
			flags: func(fixture) []string { return []string{"--storage-media-type=text/plain"} },
			want:  []string{"--storage-media-type", "is not supported"},
		},
		"an admission plugin is unknown": {
			flags: func(fixture) []string { return []string{"--enable-admission-plugins=Teleport"} },
			want:  []string{"enable-admission-plugins", "Teleport"},
		},
		"the admission configuration is garbage": {
			flags: func(f fixture) []string {
				return []string{"--admission-control-config-file=" + f.write("config.yaml", "{")}
			},
			want: []string{"--admission-control-config-file", "correct the admission flags"},
		},
		"the log format is unknown": {
			flags: func(fixture) []string { return []string{"--logging-format=stone"} },
			want:  []string{"--logging-format", "stone"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture{t: t, kubeconfig: plane.ServerKubeconfig(t)}
			var extra []string
			if c.flags != nil {
				extra = c.flags(f)
			}
			expectOneLine(t, append(f.valid(c.omit...), extra...), c.want)
		})
	}
}

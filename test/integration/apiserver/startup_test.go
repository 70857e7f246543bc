// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/integration/framework"
)

// startTimeout is the longest that bad input may go unnoticed; the server waits up to 12 seconds for etcd.
const startTimeout = 30 * time.Second

// fixture is what bad flags are made of.
type fixture struct {
	t          *testing.T
	kubeconfig string
}

// write makes a file and returns its path.
func (f fixture) write(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f fixture) missing() string { return filepath.Join(f.t.TempDir(), "missing") }

func (f fixture) unusedAddress() string {
	return fmt.Sprintf("127.0.0.1:%d", framework.FreePort(f.t))
}

// authority makes an authority that signed nothing that is in use.
func (f fixture) authority() *framework.Authority {
	f.t.Helper()
	authority, err := framework.NewAuthority("other")
	if err != nil {
		f.t.Fatal(err)
	}
	return authority
}

func TestBadInputCostsOneLine(t *testing.T) {
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
		"the main API does not run": {
			flags: func(f fixture) []string {
				return []string{"--kubeconfig=" + f.write("kubeconfig", kubeconfigFor("https://"+f.unusedAddress()))}
			},
			omit: []string{"kubeconfig"},
			want: []string{"--kubeconfig", "connection refused", "make sure that the main cluster's API server runs"},
		},
		"the user of the kubeconfig may not read how to authenticate": {
			flags: func(f fixture) []string {
				kubeconfig, err := plane.Kubeconfig("nobody")
				if err != nil {
					f.t.Fatal(err)
				}
				return []string{"--kubeconfig=" + kubeconfig}
			},
			omit: []string{"kubeconfig"},
			want: []string{"--authentication-kubeconfig", "extension-apiserver-authentication", "allow its user"},
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

// TestPermissionsMayComeAMomentLater is what an installation looks like that applies everything at once.
func TestPermissionsMayComeAMomentLater(t *testing.T) {
	t.Parallel()
	const user = "late-server"
	kubeconfig, err := plane.Kubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	flags := append(framework.Embedded(framework.ShortDir(t)), "--kubeconfig="+kubeconfig)
	server := plane.LaunchServer(t, flags...)
	framework.Eventually(t, time.Minute, "the server waits", func(context.Context) error {
		if !strings.Contains(server.Stderr(), "its authentication configuration") {
			return errors.New(server.Stderr())
		}
		return nil
	})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := plane.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.AwaitReady(t)
}

// valid is a command line that would start a server, less some flags.
func (f fixture) valid(omit ...string) []string {
	f.t.Helper()
	flags := []string{
		fmt.Sprintf("--secure-port=%d", framework.FreePort(f.t)),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + f.t.TempDir(),
		"--kubeconfig=" + f.kubeconfig,
		"--data-dir=" + framework.ShortDir(f.t),
		"--allow-ephemeral-data",
	}
	return slices.DeleteFunc(flags, func(flag string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		return slices.Contains(omit, name)
	})
}

// expectOneLine runs the server and wants it to end with code 1 and one line that contains the texts.
func expectOneLine(t *testing.T, flags, want []string) {
	t.Helper()
	process := framework.Run(t, plane.Binary, flags...)
	if code := process.Wait(t, startTimeout); code != 1 {
		t.Errorf("exit code is %d, not 1", code)
	}
	stderr := process.Stderr()
	if lines := strings.Count(stderr, "\n"); lines != 1 {
		t.Errorf("%d lines, not one:\n%s", lines, stderr)
	}
	for _, text := range want {
		if !strings.Contains(stderr, text) {
			t.Errorf("%q is missing in: %s", text, stderr)
		}
	}
}

func kubeconfigFor(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: main, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: user, user: {token: abc}}]
contexts: [{name: main, context: {cluster: main, user: user}}]
current-context: main
`, server)
}

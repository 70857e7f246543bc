// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// TestErrorsSayWhatToDo: every command says the same about the main cluster.
func TestErrorsSayWhatToDo(t *testing.T) {
	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}, Data: map[string]string{"uuid": "a", "floor": "x"}}
	refuse := func(err error) *mainCluster {
		m := newCluster(t)
		m.kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		return m
	}
	for name, tc := range map[string]struct {
		cluster *mainCluster
		want    string
	}{
		"no permission": {refuse(apierrors.NewForbidden(configMaps, witness.Name, errors.New(`User "eve" cannot get resource "configmaps" in API group "" in the namespace "kube-system"`))),
			`configmaps "jobset-apiserver-store" is forbidden: User "eve" cannot get resource "configmaps" in API group "" in the namespace "kube-system": ` +
				"use the kubeconfig of a user with this permission (--kubeconfig, --context, --as)"},
		"no user": {refuse(apierrors.NewUnauthorized("Unauthorized")),
			"the main cluster does not accept the credentials: Unauthorized: use another kubeconfig (--kubeconfig, --context)"},
		"a malformed record": {newCluster(t).store(broken),
			`data[floor] of ConfigMap kube-system/jobset-apiserver-store: strconv.ParseInt: parsing "x": invalid syntax: ` +
				"restore the entry, or remove all entries of the ConfigMap if the server still serves the right store"},
	} {
		for _, args := range [][]string{{"status"}, {"accept", "--uuid=a", "--revision=1"}, {"release-orphans"}} {
			if got := tc.cluster.run(args...); got.message != tc.want || got.code != 1 || got.out != "" {
				t.Errorf("%s, %v: %+v", name, args, got)
			}
		}
	}
	lists := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}, Data: map[string]string{"revision": "1"}}
	const want = "data[newUUID] of ConfigMap kube-system/jobset-apiserver-lost-owners: must not be empty: remove all entries of the ConfigMap; the server that refuses the store writes them again"
	if got := newCluster(t).with(refusedStore).store(lists).run("release-orphans"); got.message != want {
		t.Errorf("a malformed list: %+v", got)
	}
	m := newCluster(t).with(refusedStore).losing(lostList)
	m.fake().PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(services.GroupResource(), "", errors.New("no"))
	})
	if got := m.run("release-orphans"); !strings.HasPrefix(got.message, "listing the services of the main cluster: services is forbidden: no: use the kubeconfig of a user with this permission") {
		t.Errorf("no permission for Services: %+v", got)
	}
}

// TestConnect makes real clients.
func TestConnect(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", write("good", `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}]}`))
	broken := write("broken", "}")
	for name, tc := range map[string]struct {
		flags        string
		begins, ends string
	}{
		"no server": {"", `the main cluster does not answer: Get "http://127.0.0.1:1/api/v1/namespaces/kube-system/configmaps/jobset-apiserver-store": dial tcp 127.0.0.1:1: `,
			": check its address in the kubeconfig (--kubeconfig, --context)"},
		"no file":       {"--kubeconfig=" + dir + "/none", "stat " + dir + "/none: no such file or directory", ": give a valid kubeconfig for the main cluster (--kubeconfig, --context)"},
		"a broken file": {"--kubeconfig=" + broken, "error loading config file ", ": give a valid kubeconfig for the main cluster (--kubeconfig, --context)"},
		"no context":    {"--context=d", `context "d" does not exist`, ": give a valid kubeconfig for the main cluster (--kubeconfig, --context)"},
	} {
		var out bytes.Buffer
		cmd := NewCommand(genericiooptions.IOStreams{In: &out, Out: &out, ErrOut: &out})
		cmd.SetArgs(append([]string{"status"}, strings.Fields(tc.flags)...))
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), tc.begins) || !strings.HasSuffix(err.Error(), tc.ends) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHelp(t *testing.T) {
	got := newCluster(t).run()
	for _, want := range []string{"Usage:\n  store COMMAND", "\n  accept ", "\n  release-orphans ", "\n  status "} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing:\n%s", want, got.out)
		}
	}
	if got := newCluster(t).run("stats"); got.message != `argument "stats" is not a command of store; see store --help` {
		t.Errorf("%+v", got)
	}
	if got := newCluster(t).run("status", "--all"); got.message != "unknown flag: --all; see store status --help" {
		t.Errorf("%+v", got)
	}
	got = newCluster(t).run("release-orphans", "--help")
	own, cluster, found := strings.Cut(got.out, "\nFlags for the main cluster, as those of kubectl:\n")
	if !found || !strings.Contains(own, "--dry-run") || strings.Contains(own, "--kubeconfig") || !strings.Contains(cluster, "--kubeconfig") || strings.Contains(cluster, "--namespace") {
		t.Error(got.out)
	}
}

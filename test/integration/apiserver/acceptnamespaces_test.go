// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestAcceptNamespaces stores sets without the UID of their namespace, and with another one, and then accepts them behind kube-apiserver. What
// is accepted is not written again.
func TestAcceptNamespaces(t *testing.T) {
	tier.OnRequest(t, "starts a server without a plugin")
	data := filepath.Join(framework.ShortDir(t), "data")
	server := plane.StartServer(t, append(framework.Embedded(data), "--disable-admission-plugins=NamespaceUID")...)
	direct := newEnv(t, server, server.Config(t))
	for _, name := range []string{"imported", "older"} {
		direct.create(t, jobSet(name))
	}
	direct.create(t, jobSet("moved", func(js *jobsetv1alpha2.JobSet) { js.Annotations = map[string]string{namespaceuid.Annotation: "before"} }))
	server.Stop(t)

	server = plane.StartServer(t, framework.Embedded(data)...)
	plane.Aggregate(t, server)
	namespace, err := plane.Kube.CoreV1().Namespaces().Get(t.Context(), direct.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := plane.Kubeconfig("store-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	sets := clientset(t, plane.Config).JobSets(direct.namespace)
	expect := func(want map[string]string) {
		t.Helper()
		for name, uid := range want {
			set, err := sets.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || set.Annotations[namespaceuid.Annotation] != uid || set.Generation != 1 {
				t.Errorf("%s: annotations %v, generation %d, want the UID %q (%v)", name, set.Annotations, set.Generation, uid, err)
			}
		}
	}
	uid := string(namespace.UID)
	accept := func(mode string, more ...string) []string {
		return append([]string{"accept", "--namespaces=" + mode, "--namespace=" + direct.namespace}, more...)
	}
	left := fmt.Sprintf("namespace %s: 1 object of an earlier namespace of this name left alone\n", direct.namespace)
	expectStore(t, admin, accept("missing", "--dry-run=server"), 0, fmt.Sprintf("namespace %s: 2 objects accepted (server dry run)\n", direct.namespace), left)
	expect(map[string]string{"imported": "", "older": "", "moved": "before"})
	expectStore(t, admin, accept("missing"), 0, fmt.Sprintf("namespace %s: 2 objects accepted\n", direct.namespace), left)
	expect(map[string]string{"imported": uid, "older": uid, "moved": "before"})
	expectStore(t, admin, accept("all"), 0, fmt.Sprintf("namespace %s: 1 object accepted\n1 object in 1 namespace accepted\n", direct.namespace))
	expect(map[string]string{"imported": uid, "older": uid, "moved": uid})
	expectStore(t, admin, accept("all"), 0, "0 objects in 0 namespaces accepted\n")
}

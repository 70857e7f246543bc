// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestUnreadableObject damages two of three sets in the store. Users see it through kube-apiserver; an administrator removes one there and the
// other in the store.
func TestUnreadableObject(t *testing.T) {
	data := filepath.Join(framework.ShortDir(t), "data")
	server := plane.StartServer(t, framework.Embedded(data)...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	for _, name := range []string{"bad", "worse", "good"} {
		e.create(t, jobSet(name))
	}
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint(data)}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keys := "/registry/jobset-apiserver/jobset.x-k8s.io/jobsets/" + e.namespace + "/"
	for _, name := range []string{"bad", "worse"} {
		if _, err := store.Put(t.Context(), keys+name, "k8s\x00damaged"); err != nil {
			t.Fatal(err)
		}
	}
	kubectl := func(args ...string) (string, error) { return plane.Kubectl(t, append(args, "-n", e.namespace)...) }
	warned := func(context.Context) error {
		out, err := kubectl("get", "jobsets")
		if want := "2 of these jobsets.jobset.x-k8s.io cannot be read from the store, and are shown without their content: " + e.namespace + "/bad, "; err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("kubectl get (%w) lacks %q: %s", err, want, out)
		}
		return nil
	}
	framework.Eventually(t, startTimeout, "the list warns", warned)

	if out, err := kubectl("get", "jobset", "bad"); err == nil || !strings.Contains(out, `jobsets.jobset.x-k8s.io "`+e.namespace+`/bad" is in the store, but cannot be read: `) {
		t.Errorf("get of what cannot be read: %v, %s", err, out)
	}
	if out, err := kubectl("label", "jobset", "good", "a=b"); err != nil {
		t.Errorf("the other set: %v, %s", err, out)
	}
	for _, path := range []string{"/readyz", "/livez"} {
		if code, body := server.Get(t, path); code != http.StatusOK {
			t.Errorf("%s answers %d: %s", path, code, body)
		}
	}
	// As after a restart with a newer version's objects.
	server.Stop(t)
	server = plane.StartServer(t, framework.Embedded(data)...)
	plane.Aggregate(t, server)
	framework.Eventually(t, startTimeout, "the list warns", warned)

	options := filepath.Join(t.TempDir(), "options.json")
	content := `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	if err := os.WriteFile(options, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := plane.Kubectl(t, "delete", "--raw", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/"+e.namespace+"/jobsets/bad", "-f", options); err != nil {
		t.Errorf("delete --raw: %v, %s", err, out)
	}
	storeTool(t, 0, "Would remove "+keys+"worse, which cannot be read: ", "remove", "--dry-run", "--key="+keys+"worse", "--data-dir="+data)
	storeTool(t, 0, "Removed "+keys+"worse, which could not be read: ", "remove", "--key="+keys+"worse", "--data-dir="+data)
	framework.Eventually(t, startTimeout, "only the good set is there", func(context.Context) error {
		list, err := e.typed.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != "good" || list.Items[0].Labels["a"] != "b" {
			return fmt.Errorf("the list is %v (%w), want the good set only", list, err)
		}
		return nil
	})
}

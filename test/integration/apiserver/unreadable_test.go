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

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestUnreadableObject damages two of three sets in the store. Users see it through kube-apiserver; an administrator
// removes one there and the other in the store.
func TestUnreadableObject(t *testing.T) {
	tier.Safety(t)
	u := &unreadableObjects{data: filepath.Join(framework.ShortDir(t), "data")}
	if t.Run("damage", u.damage) {
		t.Run("remove after a restart", u.remove)
	}
}

type unreadableObjects struct{ data, namespace string }

// start starts a server and registers it at kube-apiserver until the end of the test.
func (u *unreadableObjects) start(t *testing.T) *framework.Server {
	t.Helper()
	server := plane.StartServer(t, framework.Embedded(u.data)...)
	plane.Aggregate(t, server)
	return server
}

func (u *unreadableObjects) keys() string {
	return "/registry/jobset-apiserver/jobset.x-k8s.io/jobsets/" + u.namespace + "/"
}

func (u *unreadableObjects) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return plane.Kubectl(t, append(args, "-n", u.namespace)...)
}

func (u *unreadableObjects) awaitWarning(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the list warns", func(context.Context) error {
		out, err := u.kubectl(t, "get", "jobsets")
		want := "2 of these jobsets.jobset.x-k8s.io cannot be read from the store, and are shown without their content: " + u.namespace + "/bad, "
		if err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("kubectl get (%w) lacks %q: %s", err, want, out)
		}
		return nil
	})
}

func (u *unreadableObjects) damage(t *testing.T) {
	server := u.start(t)
	e := newEnv(t, server, plane.Config)
	u.namespace = e.namespace
	for _, name := range []string{"bad", "worse", "good"} {
		e.create(t, jobSet(name))
	}
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint(u.data)}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, name := range []string{"bad", "worse"} {
		if _, err := store.Put(t.Context(), u.keys()+name, "k8s\x00damaged"); err != nil {
			t.Fatal(err)
		}
	}
	u.awaitWarning(t)
	if out, err := u.kubectl(t, "get", "jobset", "bad"); err == nil || !strings.Contains(out, `jobsets.jobset.x-k8s.io "`+u.namespace+`/bad" is in the store, but cannot be read: `) {
		t.Errorf("get of what cannot be read: %v, %s", err, out)
	}
	if out, err := u.kubectl(t, "label", "jobset", "good", "a=b"); err != nil {
		t.Errorf("the other set: %v, %s", err, out)
	}
	for _, path := range []string{"/readyz", "/livez"} {
		if code, body := server.Get(t, path); code != http.StatusOK {
			t.Errorf("%s answers %d: %s", path, code, body)
		}
	}
}

func (u *unreadableObjects) remove(t *testing.T) {
	server := u.start(t)
	u.awaitWarning(t)
	options := filepath.Join(t.TempDir(), "options.json")
	content := `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	if err := os.WriteFile(options, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := plane.Kubectl(t, "delete", "--raw", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/"+u.namespace+"/jobsets/bad", "-f", options); err != nil {
		t.Errorf("delete --raw: %v, %s", err, out)
	}
	storeTool(t, 0, "Would remove "+u.keys()+"worse, which cannot be read: ", "remove", "--dry-run", "--key="+u.keys()+"worse", "--data-dir="+u.data)
	storeTool(t, 0, "Removed "+u.keys()+"worse, which could not be read: ", "remove", "--key="+u.keys()+"worse", "--data-dir="+u.data)
	sets := clientset(t, server.Config(t)).JobSets(u.namespace)
	framework.Eventually(t, "only the good set is there", func(ctx context.Context) error {
		list, err := sets.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != "good" || list.Items[0].Labels["a"] != "b" {
			return fmt.Errorf("the list is %v (%w), want the good set only", list, err)
		}
		return nil
	})
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	embedded "github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// patchDefinition begins the commands that change which versions the definition serves.
const patchDefinition = "kubectl patch customresourcedefinition leaderworkersets.leaderworkerset.x-k8s.io --type=json --patch-file "

// takenSets is how many sets are taken over.
const takenSets = 3

// takeover moves LeaderWorkerSets from a CustomResourceDefinition to our server, as docs/operations/take-over.md says.
type takeover struct {
	*stage
	namespace string
	page      *runbook.Page
	kubectl   string
	// uids are the UIDs of the sets.
	uids map[string]types.UID
	// service is the file with our APIService.
	service string
	// etcd is the etcd of our server.
	etcd *clientv3.Client
	// was has the versions of all children before the take-over.
	was map[string]string
}

// takenOver takes sets over, gives them back, takes them over again, and deletes the definition. Their children stay as
// they are all the time.
func (s *stage) takenOver(t *testing.T) {
	o := s.newTakeover(t)
	o.begin(t)
	o.unchanged(t, "before the take-over")
	o.firstStart(t)
	o.unchanged(t, "after a first start that did not take over")
	for _, a := range additions() {
		o.survives(t, a)
		o.unchanged(t, a.name)
	}

	o.do(t, "jobset-apiserver store import --dry-run=client", "DIRECTORY", s.right)
	o.killImports(t)
	o.do(t, "jobset-apiserver store import --data-dir", "DIRECTORY", s.right)
	o.do(t, "jobset-apiserver store import --compare", "DIRECTORY", s.right)
	o.route(t)
	o.unchanged(t, "after the group was routed to our server")
	o.do(t, "kubectl delete -f artifacts/take-over/freeze.yaml")
	o.controller(t, "start")
	o.adopted(t)
	o.unchanged(t, "after our controller has adopted the sets")

	o.controller(t, "stop")
	o.giveBack(t)
	o.unchanged(t, "after the group was given back to the definition")
	o.route(t)
	o.controller(t, "start")
	o.unchanged(t, "after the group was routed to our server again")

	o.deleteDefinition(t)
	o.unchanged(t, "after the definition was deleted")
	o.served(t)
	o.deleteWebhooks(t)
	o.page.Done(t)
	o.end(t)
}

func (s *stage) newTakeover(t *testing.T) *takeover {
	t.Helper()
	binaries, err := localcluster.TestBinaries(s.Root)
	if err != nil {
		t.Fatal(err)
	}
	o := &takeover{
		stage: s, namespace: s.cluster.namespace(t, "taken"), uids: map[string]types.UID{}, kubectl: filepath.Join(binaries, "kubectl"),
		page: runbook.Open(t, filepath.Join("..", "..", "docs", "operations", "take-over.md")),
	}
	o.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{embedded.Endpoint(s.right)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.etcd.Close() })
	return o
}

// do runs the command of the page that begins so, which must succeed.
func (o *takeover) do(t *testing.T, prefix string, oldnew ...string) string {
	t.Helper()
	command := o.page.Command(t, prefix, oldnew...)
	program := o.kubectl
	if command[0] != "kubectl" {
		program = o.Program(command[0])
	}
	ctx, stop := context.WithTimeout(t.Context(), timeout)
	defer stop()
	cmd := exec.CommandContext(ctx, program, append(command[1:], "--kubeconfig="+o.Kubeconfig())...)
	cmd.Dir = o.Root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func (o *takeover) controller(t *testing.T, action string) {
	t.Helper()
	if err := o.Script(action, "controller"); err != nil {
		t.Fatal(err)
	}
}

// killImports ends imports as soon as one more object is in the store.
func (o *takeover) killImports(t *testing.T) {
	t.Helper()
	for count := range takenSets {
		cmd := exec.CommandContext(t.Context(), o.Program("jobset-apiserver"), "store", "import", "--data-dir="+o.right, "--kubeconfig="+o.Kubeconfig())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		framework.Eventually(t, "an object is imported", func(ctx context.Context) error {
			return o.imported(ctx, int64(count)+1)
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// imported returns an error unless so many objects are imported.
func (o *takeover) imported(ctx context.Context, count int64) error {
	got, err := o.etcd.Get(ctx, "/registry/jobset-apiserver/"+importer.Marks+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && got.Count < count {
		err = fmt.Errorf("%d objects", got.Count)
	}
	return err
}

// route replaces the APIService, and lets kube-apiserver end the watches of the definition.
func (o *takeover) route(t *testing.T) {
	t.Helper()
	old, err := o.sets().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.do(t, "kubectl replace -f", "APISERVICE", o.service)
	o.reached(t)
	o.awaitUIDs(t)
	o.do(t, "kubectl wait --for=condition=Available")
	o.do(t, patchDefinition+"artifacts/take-over/not-served.json")
	framework.Eventually(t, "the watches of the definition end", func(context.Context) error {
		for {
			select {
			case _, open := <-old.ResultChan():
				if !open {
					return nil
				}
			default:
				return errors.New("one goes on")
			}
		}
	})
}

// giveBack lets the definition serve its objects again.
func (o *takeover) giveBack(t *testing.T) {
	t.Helper()
	o.do(t, patchDefinition+"artifacts/take-over/served.json")
	o.do(t, "kubectl label apiservice")
	o.local(t)
	o.awaitUIDs(t)
}

// local waits until kube-apiserver serves the group itself.
func (o *takeover) local(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the definition has the group", func(ctx context.Context) error {
		service, err := o.dynamic.Resource(apiservice.Resource).Get(ctx, lwsService, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if server, found, _ := unstructured.NestedMap(service.Object, "spec", "service"); found && server != nil {
			return fmt.Errorf("it is routed to %v", server)
		}
		if status, message := apiservice.Available(service); status != "True" {
			return errors.New(message)
		}
		return nil
	})
}

// awaitUIDs waits until the sets are served with their UIDs.
func (o *takeover) awaitUIDs(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the sets are served", func(ctx context.Context) error {
		for name, uid := range o.uids {
			set, err := o.sets().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if set.UID != uid {
				return fmt.Errorf("%s has UID %s, must have %s", name, set.UID, uid)
			}
		}
		return nil
	})
}

// deleteDefinition deletes the definition, with all of its objects, which no server serves.
func (o *takeover) deleteDefinition(t *testing.T) {
	t.Helper()
	o.do(t, "kubectl delete customresourcedefinition")
	framework.Eventually(t, "the definition is gone", func(ctx context.Context) error {
		_, err := o.dynamic.Resource(definitions).Get(ctx, definitionName, metav1.GetOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists: %w", err)
		}
		return nil
	})
}

// adopted waits until our controller has corrected the status that was taken over.
func (o *takeover) adopted(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "our controller writes the status", func(ctx context.Context) error {
		for name := range o.uids {
			set, err := o.sets().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if set.Status.ReadyReplicas != 1 || set.Generation != 1 {
				return fmt.Errorf("%s: generation %d, status %+v", name, set.Generation, set.Status)
			}
		}
		return nil
	})
}

// served works with the sets after all: one grows, and the children of another go with it.
func (o *takeover) served(t *testing.T) {
	t.Helper()
	patch := []byte(`{"spec":{"replicas":2}}`)
	if _, err := o.sets().Patch(t.Context(), takenName(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := o.sets().Delete(t.Context(), takenName(1), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "one set has grown, and the children of another are gone", func(ctx context.Context) error {
		now, err := o.versions(ctx)
		if err != nil {
			return err
		}
		if now["Pod "+takenName(0)+"-1-1"] == "" {
			return errors.New("the set has not grown")
		}
		for name := range now {
			if strings.Contains(name, takenName(1)) {
				return fmt.Errorf("%s still exists", name)
			}
		}
		return nil
	})
}

// encode returns JSON of an object.
func encode(t *testing.T, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

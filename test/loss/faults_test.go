// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// witnessKey is the key of the witness in etcd.
const witnessKey = "/registry/jobset-apiserver/" + witness.KeyName

// fault replaces the store by a wrong one, and then puts the right one back.
type fault struct {
	name   string
	reason witness.Reason
	// whole means that all that must go on is looked at after the fault. In a short run, that is after some faults only.
	whole bool
	begin func(*testing.T, *stage)
	end   func(*testing.T, *stage)
}

// stage is where all faults happen: a namespace with running sets, and wrong stores.
type stage struct {
	*cluster
	namespace string
	before    *children
	// foreign has other sets of the same names, and another UUID. older is the right store from before half of the sets were created.
	foreign, older string
	// etcd has the right store while the server does not embed it.
	etcd *etcd
}

// faults are all ways to a wrong store. The gate has the first one.
func faults() []fault {
	restart := func(store func(*testing.T, *stage) string) func(*testing.T, *stage) {
		return func(t *testing.T, s *stage) {
			s.stop(t)
			s.start(t, on(store(t, s)))
		}
	}
	back := func(t *testing.T, s *stage) { s.serve(t, on(s.right)) }
	all := []fault{
		{"empty store", witness.ReasonEmptyStore, true, restart(func(t *testing.T, s *stage) string { return s.store(t, "empty") }), back},
		{"foreign store under a server that runs", witness.ReasonForeignStore, long(), swapToForeign, swapBack},
		{"rolled-back store", witness.ReasonRolledBack, long(), restart(func(t *testing.T, s *stage) string { return s.copied(t, s.older, "rolled-back") }), back},
		{"store of another cluster, and kube-controller-manager restarts", witness.ReasonOtherCluster, long(), beginClone, back},
	}
	if !tier.Long() {
		return all[:1]
	}
	return all
}

// long returns whether the long form runs.
func long() bool { return watched > time.Minute }

// swapToForeign moves the right store into an etcd of its own, and then replaces that under the server.
func swapToForeign(t *testing.T, s *stage) {
	s.stop(t)
	s.etcd = newEtcd(t)
	s.etcd.start(t, s.right)
	s.serve(t, "--etcd-servers="+s.etcd.client.String())
	s.etcd.stop()
	s.etcd.start(t, s.foreign)
}

// swapBack puts the right store back under the same server, which ends: what it remembers may be of the wrong store.
func swapBack(t *testing.T, s *stage) {
	s.etcd.stop()
	s.etcd.start(t, s.right)
	s.server.Wait(t)
	s.server = nil
	s.serve(t, "--etcd-servers="+s.etcd.client.String())
	s.stop(t)
	s.etcd.stop()
	s.serve(t, on(s.right))
}

// beginClone serves a copy of the right store whose key says that it belongs to another cluster. The new kube-controller-manager knows
// no owner yet, and asks for each.
func beginClone(t *testing.T, s *stage) {
	s.stop(t)
	clone := s.copied(t, s.right, "clone")
	s.changeKey(t, clone, func(key *witness.Key) { key.ClusterUID = "another-cluster" })
	s.start(t, on(clone))
	s.restartControllerManager(t)
}

// changeKey changes the key of a store that no server uses.
func (c *cluster) changeKey(t *testing.T, store string, change func(*witness.Key)) {
	t.Helper()
	e := newEtcd(t)
	e.start(t, store)
	defer e.stop()
	client := e.connect(t)
	got, err := client.Get(t.Context(), witnessKey)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("the store has no witness: %v, %v", got, err)
	}
	key, err := witness.DecodeKey(got.Kvs[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	change(&key)
	if _, err := client.Put(t.Context(), witnessKey, string(key.Encode())); err != nil {
		t.Fatal(err)
	}
}

// TestWrongStoresLoseNothing goes through all faults, one after the other, with the same running sets.
func TestWrongStoresLoseNothing(t *testing.T) {
	tier.Safety(t)
	t.Parallel()
	s := newStage(t, first)
	for _, f := range faults() {
		if !t.Run(f.name, func(t *testing.T) { s.survive(t, f) }) {
			return
		}
	}
}

// newStage prepares the stores and starts the sets.
func newStage(t *testing.T, c *cluster) *stage {
	s := &stage{cluster: c, namespace: c.namespace(t, "train")}
	// The foreign store comes first, while no controller runs that would create the Jobs of its sets.
	if err := s.Script("stop", "controller"); err != nil {
		t.Fatal(err)
	}
	s.foreign = s.store(t, "foreign")
	s.forget(t)
	s.serve(t, on(s.foreign))
	s.create(t, s.namespace, 0, sets)
	s.stop(t)
	s.forget(t)

	s.serve(t, on(s.right))
	if err := s.Script("start", "controller"); err != nil {
		t.Fatal(err)
	}
	if c == second {
		s.create(t, s.namespace, 0, few)
		s.firstStart(t)
		s.create(t, s.namespace, few, sets/2)
	} else {
		s.create(t, s.namespace, 0, sets/2)
	}
	s.stop(t)
	s.older = s.copied(t, s.right, "older")
	s.serve(t, on(s.right))
	s.create(t, s.namespace, sets/2, sets)
	s.before = s.running(t, s.namespace, sets)
	return s
}

// forget empties the record, so that the next store is taken for the first.
func (c *cluster) forget(t *testing.T) {
	t.Helper()
	c.stop(t)
	if err := framework.ForgetStore(t.Context(), c.Kube); err != nil {
		t.Fatal(err)
	}
}

// survive watches the Jobs during a fault. Then the right store comes back, and everything goes on.
func (s *stage) survive(t *testing.T, f fault) {
	life := s.newLife(t)
	begin := time.Now()
	f.begin(t, s)
	refusal := s.refused(t, f.reason, begin)
	t.Logf("refused after %s: %s", time.Since(begin).Round(100*time.Millisecond), refusal.Message)
	s.deleteNamespace(t, life.removed)
	s.pluginExplains(t, refusal)
	lost := s.watch(t, s.namespace, s.before, watched, never)
	report(t, row{fault: f.name, jobs: len(s.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Fatalf("%d Jobs and pods were lost: %.300v", len(lost), lost)
	}
	if exists, err := s.namespaceExists(t.Context(), life.removed); err != nil || !exists {
		t.Errorf("the namespace exists: %t (%v): it was finalized with a set in it", exists, err)
	}
	if record, err := s.record(t.Context()); err != nil || record.Refusal == nil || record.Refusal.NewUUID != refusal.NewUUID {
		t.Errorf("the refusal did not last: %+v, %v", record, err)
	}
	f.end(t, s)
	back := time.Now()
	t.Logf("the namespace that was deleted meanwhile is gone after %s", s.namespaceEnds(t, life.removed).Round(time.Second))
	if f.whole {
		life.goOn(t)
		t.Logf("everything goes on %s after the right store is back", time.Since(back).Round(time.Second))
	}
	if lost := s.watch(t, s.namespace, s.before, time.Second, never); len(lost) > 0 {
		t.Errorf("lost when the right store was back: %.300v", lost)
	}
}

// pluginExplains runs commands of the plugin while the server refuses.
func (s *stage) pluginExplains(t *testing.T, refusal *witness.Refusal) {
	t.Helper()
	message := strings.Join(strings.Fields(refusal.Message), " ")
	for _, args := range [][]string{{"doctor"}, {"why", setName(0)}, {"list"}, {"restart", setName(0)}} {
		out, err := s.run(t, "kubectl-jobset", append(args, "--kubeconfig="+s.Kubeconfig(), "-n="+s.namespace)...)
		if err == nil || !strings.Contains(out, message) {
			t.Errorf("kubectl jobset %s (%v) does not say why the server refuses:\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// life are objects that something is done to after a fault.
type life struct {
	*cluster
	// namespace has a set that completes and one that is deleted; removed is deleted during the fault.
	namespace, removed string
}

func (s *stage) newLife(t *testing.T) *life {
	t.Helper()
	l := &life{cluster: s.cluster, namespace: s.cluster.namespace(t, "life"), removed: s.cluster.namespace(t, "removed")}
	l.create(t, l.namespace, 0, 2)
	l.create(t, l.removed, 0, 1)
	l.running(t, l.namespace, 2)
	l.running(t, l.removed, 1)
	return l
}

// goOn holds once the controller and the garbage collector have done their work.
func (l *life) goOn(t *testing.T) {
	t.Helper()
	l.finish(t, l.namespace, setName(0))
	if err := l.JobSets.JobsetV1alpha2().JobSets(l.namespace).Delete(t.Context(), setName(1), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.completes(t, l.namespace, setName(0))
	l.childrenGo(t, l.namespace, setName(1))
}

// restartControllerManager kills kube-controller-manager and starts it again with its flags.
func (c *cluster) restartControllerManager(t *testing.T) {
	t.Helper()
	pid, command := c.controllerManager(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "kube-controller-manager is gone", func(context.Context) error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d still exists: %w", pid, err)
		}
		return nil
	})
	c.recordPID(t, c.launch(t, filepath.Join(c.Dir, "logs", "loss-kube-controller-manager.log"), command))
}

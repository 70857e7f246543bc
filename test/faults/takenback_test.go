// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// takesBack makes TestMainClusterRestored run. Package rewind has tests with real informers that always run.
const takesBack = "JOBSET_MAIN_RESTORE"

// TestMainClusterRestored takes the etcd of the main cluster back to an earlier state, while our store goes on with the later one: sets have been created, deleted
// and restarted since. Our programs run all the time, unless kube-apiserver is away for so long that the controller loses its lease. The test is the last one of the package: namespaces of others that were deleted come back, too.
func TestMainClusterRestored(t *testing.T) {
	if os.Getenv(takesBack) == "" {
		t.Skip("set " + takesBack + " to run it: what simulates the main cluster does not always follow its own restore in time")
	}
	p := newParts(t)
	p.start(t, []string{mainEtcd, mainAPI, ourServer, ourControllers})
	r := &mainRestored{life: newLife(t, newDice(t)), parts: p, backup: filepath.Join(t.TempDir(), "backup")}
	for _, name := range []string{"stays", "deleted", "restarts"} {
		r.make(name)
	}
	r.stopMain()
	r.copy(r.data(), r.backup)
	r.startMain()
	r.poll("the sets run as before", func() error {
		r.startAgain()
		return r.are("stays 0", "deleted 0", "restarts 0")
	})

	r.must(shared.JobSets.JobsetV1alpha2().JobSets(r.namespace).Delete(r.ctx, "deleted", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
	_, err := shared.JobSets.JobsetV1alpha2().JobSets(r.namespace).Restart(r.ctx, "restarts", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{})
	r.must(err)
	r.make("created")
	r.poll("the changes since the backup are done", func() error { return r.are("stays 0", "restarts 1", "created 0") })
	stays := r.uids("stays")
	r.churn()

	r.stopMain()
	r.must(os.RemoveAll(r.data()))
	r.copy(r.backup, r.data())
	began := time.Now()
	r.startMain()
	// What simulates the nodes would wait for the leases that it had in the lost time.
	r.must(shared.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(r.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, name := range mainControllers {
		p.restart(t, name) // as Kubernetes asks for; ours go on
	}
	r.poll("Jobs and sets agree again", func() error {
		r.startAgain()
		return r.are("stays 0", "restarts 1", "created 0")
	})
	t.Logf("agreed %.1f s after the start of the restored etcd", time.Since(began).Seconds())
	if now := r.uids("stays"); !slices.Equal(stays, now) {
		t.Errorf("the Jobs of the set that did not change were %v, and are %v", stays, now)
	}
	r.make("later")
}

// mainRestored is a cluster whose etcd is taken back.
type mainRestored struct {
	*life
	parts  *parts
	backup string
}

func (r *mainRestored) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// make creates a set with two Jobs, and waits for them.
func (r *mainRestored) make(name string) {
	r.Helper()
	set := builders.JobSet(name, builders.WithJobs("w", 2, 1))
	set.Namespace = r.namespace
	set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"jobset-apiserver.io/kwok-outcome": "running"}
	set.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
	_, err := shared.JobSets.JobsetV1alpha2().JobSets(r.namespace).Create(r.ctx, set, metav1.CreateOptions{})
	r.must(err)
	r.poll("Jobs of "+name, func() error {
		if n := len(r.uids(name)); n != 2 {
			return fmt.Errorf("%d Jobs", n)
		}
		return nil
	})
}

// are returns whether the Jobs that are there, and that are not being deleted, are two for each "set attempt", all of whose pods run.
func (r *mainRestored) are(want ...string) error {
	jobs, err := shared.Kube.BatchV1().Jobs(r.namespace).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var got, expected []string
	for i := range jobs.Items {
		job := &jobs.Items[i]
		state := ""
		if job.Status.Active != 1 || job.DeletionTimestamp != nil {
			state = " does not run"
		}
		got = append(got, job.Labels[jobsetv1alpha2.JobSetNameKey]+" "+job.Labels[jobsetv1alpha2.RestartsKey]+state)
	}
	for _, w := range want {
		expected = append(expected, w, w)
	}
	slices.Sort(got)
	slices.Sort(expected)
	if !slices.Equal(got, expected) {
		return fmt.Errorf("Jobs of %s, want %s", strings.Join(got, ", "), strings.Join(expected, ", "))
	}
	return nil
}

// churn makes the cluster go through so many versions that it will not come to those of our informers again during the test.
func (r *mainRestored) churn() {
	r.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "churn", Namespace: r.namespace}}
	_, err := shared.Kube.CoreV1().ConfigMaps(r.namespace).Create(r.ctx, object, metav1.CreateOptions{})
	r.must(err)
	for i := range 2000 {
		object.Data = map[string]string{"i": strconv.Itoa(i)}
		_, err := shared.Kube.CoreV1().ConfigMaps(r.namespace).Update(r.ctx, object, metav1.UpdateOptions{})
		r.must(err)
	}
	r.make("last") // whose events bring the informers to these versions
	r.must(shared.JobSets.JobsetV1alpha2().JobSets(r.namespace).Delete(r.ctx, "last", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
	r.poll("the last set is gone", func() error { return r.are("stays 0", "restarts 1", "created 0") })
}

// uids are those of the Jobs of a set.
func (r *mainRestored) uids(name string) (uids []string) {
	r.Helper()
	jobs, err := shared.Kube.BatchV1().Jobs(r.namespace).List(r.ctx, metav1.ListOptions{LabelSelector: jobsetv1alpha2.JobSetNameKey + "=" + name})
	r.must(err)
	for i := range jobs.Items {
		uids = append(uids, string(jobs.Items[i].UID))
	}
	slices.Sort(uids)
	return uids
}

// data is the directory of the main etcd.
func (r *mainRestored) data() string {
	r.Helper()
	for _, argument := range r.parts.commands[mainEtcd] {
		if dir, ok := strings.CutPrefix(argument, "--data-dir="); ok {
			return dir
		}
	}
	r.Fatal("etcd has no --data-dir")
	return ""
}

func (r *mainRestored) copy(from, to string) {
	r.Helper()
	r.must(os.CopyFS(to, os.DirFS(from)))
}

func (r *mainRestored) stopMain() {
	r.parts.mu.Lock()
	r.parts.stopped = true
	r.parts.mu.Unlock()
	for _, name := range []string{mainAPI, mainEtcd} {
		r.parts.take(name).Kill()
	}
}

// startAgain starts the controller if it has ended because it could not renew its lease, as the kubelet does.
func (r *mainRestored) startAgain() {
	r.Helper()
	r.parts.mu.Lock()
	process := r.parts.running[ourControllers]
	r.parts.mu.Unlock()
	select {
	case <-process.Done():
		_, err := r.parts.launch(r.T, ourControllers)
		r.must(err)
		r.Log("the controller had lost its lease")
	default:
	}
}

func (r *mainRestored) startMain() {
	r.Helper()
	r.parts.mu.Lock()
	r.parts.stopped = false
	r.parts.mu.Unlock()
	for _, name := range []string{mainEtcd, mainAPI} {
		_, err := r.parts.launch(r.T, name)
		r.must(err)
	}
	framework.Eventually(r.T, time.Minute, "kube-apiserver is ready", func(ctx context.Context) error {
		return shared.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(2 * time.Second).Do(ctx).Error()
	})
	r.startAgain()
	framework.Eventually(r.T, time.Minute, "sets are served", func(ctx context.Context) error {
		_, err := shared.Kube.CoreV1().Namespaces().Get(ctx, r.namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = shared.JobSets.JobsetV1alpha2().JobSets(r.namespace).List(ctx, metav1.ListOptions{})
		return err
	})
}

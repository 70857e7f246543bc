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
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestMainClusterRestored takes the etcd of the main cluster back to an earlier state, while our store goes on with the
// later one: sets have been created, deleted and restarted since. Our programs run all the time, unless kube-apiserver
// is away for so long that the controller loses its lease. It looks at what our programs do alone, because the other
// controllers have to be started again. The test is the last one of the package: namespaces of others that were deleted
// come back, too.
func TestMainClusterRestored(t *testing.T) {
	tier.OnRequest(t, "restores the main control plane")
	p := newParts(t)
	p.start(t, []string{mainEtcd, mainAPI, ourServer, ourControllers})
	r := &mainRestored{life: newLife(t, newDice(t)), parts: p, backup: filepath.Join(t.TempDir(), "backup")}
	for _, name := range []string{"stays", "deleted", "restarts"} {
		r.make(name)
	}
	r.stopMain()
	r.copy(r.data(), r.backup)
	r.startMain()

	sets := shared.JobSets.JobsetV1alpha2().JobSets(r.namespace)
	r.must(sets.Delete(r.ctx, "deleted", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
	_, err := sets.Restart(r.ctx, "restarts", &batchv1alpha1.JobSetRestart{}, metav1.CreateOptions{})
	r.must(err)
	r.make("created")
	r.agree("before the restore")
	stays := r.uids("stays")
	r.churn()

	r.stopMain()
	r.must(os.RemoveAll(r.data()))
	r.copy(r.backup, r.data())
	began := time.Now()
	r.startMain()
	r.agree("after the restore")
	t.Logf("agreed %.1f s after the start of the restored etcd", time.Since(began).Seconds())
	if now := r.uids("stays"); !slices.Equal(stays, now) {
		t.Errorf("the Jobs of the set that did not change were %v, and are %v", stays, now)
	}
	r.make("later")
}

// agree waits until the sets have exactly the Jobs that they need, except for Jobs that are being deleted. Jobs of earlier attempts are
// deleted, and sets that were created have their Jobs. Jobs of the attempt that goes on come once the garbage collector, which is part of
// Kubernetes, has removed the former ones.
func (r *mainRestored) agree(when string) {
	r.Helper()
	want := []string{"created 0", "created 0", "stays 0", "stays 0"}
	r.poll("Jobs and sets agree "+when, func() error {
		r.startAgain()
		jobs, err := shared.Kube.BatchV1().Jobs(r.namespace).List(r.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for i := range jobs.Items {
			job := &jobs.Items[i]
			of := job.Labels[jobsetv1alpha2.JobSetNameKey] + " " + job.Labels[jobsetv1alpha2.RestartsKey]
			if job.DeletionTimestamp == nil && of != "restarts 1" && of != "deleted 0" && of != "last 0" {
				got = append(got, of)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("Jobs of %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
		}
		return nil
	})
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
		r.startAgain()
		if n := len(r.uids(name)); n != 2 {
			return fmt.Errorf("%d Jobs", n)
		}
		return nil
	})
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
}

// uids are the UIDs of the Jobs of a set.
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
	framework.Eventually(r.T, "kube-apiserver is ready", func(ctx context.Context) error {
		return shared.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(2 * time.Second).Do(ctx).Error()
	})
	r.startAgain()
	framework.Eventually(r.T, "sets are served", func(ctx context.Context) error {
		_, err := shared.Kube.CoreV1().Namespaces().Get(ctx, r.namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = shared.JobSets.JobsetV1alpha2().JobSets(r.namespace).List(ctx, metav1.ListOptions{})
		return err
	})
}

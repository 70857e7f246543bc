// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// bystander are sets that run while something fails, with a controller. They and their children must stay as they are.
type bystander struct {
	*embedded
	namespace  string
	controller *framework.Process
	// state is what must stay, by the names of the objects.
	state map[string]string
}

// bystanders is how many sets run; each has bystanderJobs Jobs with one pod.
const bystanders, bystanderJobs = 3, 2

func (e *embedded) newBystander(ctx context.Context) (*bystander, error) {
	b := &bystander{embedded: e}
	controller, err := framework.StartProcess(e.file("logs/controller.log"), e.Program("jobset-controller"),
		"--kubeconfig="+e.file("controller.kubeconfig"), "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--v=2")
	if err != nil {
		return nil, err
	}
	b.controller = controller
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bystander-"}}
	if namespace, err = e.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return b, err
	}
	b.namespace = namespace.Name
	for i := range bystanders {
		set := builders.JobSet(fmt.Sprint("set-", i), builders.WithJobs("w", bystanderJobs, 1))
		set.Namespace = b.namespace
		set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{outcomeKey: "running"}
		// kube-apiserver may not have noticed yet that the servers are ready.
		err := controller.Await(ctx, "has a set to start", func(ctx context.Context) error {
			_, err := e.JobSets.JobsetV1alpha2().JobSets(b.namespace).Create(ctx, set, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return b, err
		}
	}
	return b, controller.Await(ctx, "has started the sets", b.begun)
}

// begun takes the state when all pods run and all sets say so.
func (b *bystander) begun(ctx context.Context) error {
	sets, err := b.JobSets.JobsetV1alpha2().JobSets(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; len(set.Status.ReplicatedJobsStatus) == 0 || set.Status.ReplicatedJobsStatus[0].Ready != bystanderJobs {
			return fmt.Errorf("%s is not ready", set.Name)
		}
	}
	before := b.state
	if b.state, err = b.read(ctx); err == nil && !maps.Equal(before, b.state) {
		return errors.New("the sets still change")
	}
	return err
}

// read returns the version of each set, and the UIDs and generations of its children, whose status belongs to Kubernetes.
func (b *bystander) read(ctx context.Context) (map[string]string, error) {
	state := map[string]string{}
	sets, err := b.JobSets.JobsetV1alpha2().JobSets(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		o := &sets.Items[i]
		state["JobSet "+o.Name] = fmt.Sprintf("%s version %s", o.UID, o.ResourceVersion)
	}
	jobs, err := b.Kube.BatchV1().Jobs(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range jobs.Items {
		o := &jobs.Items[i]
		state["Job "+o.Name] = fmt.Sprintf("%s generation %d", o.UID, o.Generation)
	}
	pods, err := b.Kube.CoreV1().Pods(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		o := &pods.Items[i]
		state["Pod "+o.Name] = fmt.Sprintf("%s generation %d", o.UID, o.Generation)
	}
	services, err := b.Kube.CoreV1().Services(b.namespace).List(ctx, metav1.ListOptions{})
	for i := range services.Items {
		o := &services.Items[i]
		state["Service "+o.Name] = fmt.Sprintf("%s version %s", o.UID, o.ResourceVersion)
	}
	return state, err
}

// untouched checks that everything is as it was, and that the controller runs.
func (b *bystander) untouched(t *testing.T, after string) {
	t.Helper()
	var now map[string]string
	framework.Eventually(t, "the sets that ran are read", func(ctx context.Context) (err error) {
		now, err = b.read(ctx)
		return err
	})
	if !maps.Equal(now, b.state) {
		t.Errorf("after %s, sets or children that ran have changed (-before +now):\n%s", after, cmp.Diff(b.state, now))
	}
	select {
	case <-b.controller.Done():
		t.Errorf("after %s, jobset-controller has ended: %v", after, b.controller.State())
	default:
	}
}

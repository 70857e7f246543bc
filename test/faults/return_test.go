// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestControllerResumesAfterServerOutage stops our API server for a minute. The controller looks whether it is back
// every other second, and so acts on a new set within five seconds of its return. The bound leaves time for a busy machine;
// the reflectors of the library alone come back after 30 to 60 seconds.
func TestControllerResumesAfterServerOutage(t *testing.T) {
	tier.OnRequest(t, "an outage of a minute")
	const outage, bound = time.Minute, 15 * time.Second
	newControllers(t, shared.Kubeconfig(), "--leader-elect=false").must()
	l := newLife(t, newDice(t))
	create := func(name string) error {
		set := builders.JobSet(name, builders.WithJobs("w", 1, 1))
		set.Namespace = l.namespace
		_, err := shared.JobSets.JobsetV1alpha2().JobSets(l.namespace).Create(l.ctx, set, metav1.CreateOptions{})
		return err
	}
	acted := func(name string) func() error {
		return func() error {
			_, err := shared.Kube.BatchV1().Jobs(l.namespace).Get(l.ctx, name+"-w-0", metav1.GetOptions{})
			return err
		}
	}
	l.poll("creating a set", func() error { return create("before") })
	l.poll("waiting for its Job", acted("before"))

	if err := shared.Script("stop", "apiserver"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outage)
	started := make(chan error, 1)
	go func() { started <- shared.Script("start", "apiserver") }()
	l.poll("creating a set in the server that is back", func() error { return create("after") })
	served := time.Now()
	l.poll("waiting for its Job", acted("after"))
	took := time.Since(served)
	t.Logf("the controller acted %s after the return of the server", took.Round(pollInterval))
	var slow error
	if took > bound {
		slow = fmt.Errorf("the controller acted after %s, later than %s", took, bound)
	}
	if err := errors.Join(slow, <-started); err != nil {
		t.Error(err)
	}
}

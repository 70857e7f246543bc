// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/manager"
)

func electionOptions(t *testing.T) *Options {
	t.Helper()
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.LeaderElection.ResourceNamespace = "ns"
	o.LeaderElection.LeaseDuration.Duration = 600 * time.Millisecond
	o.LeaderElection.RenewDeadline.Duration = 400 * time.Millisecond
	o.LeaderElection.RetryPeriod.Duration = 100 * time.Millisecond
	return o
}

// elect runs an election to its end.
func elect(t *testing.T, ctx context.Context, client *fake.Clientset, run func(context.Context)) error {
	t.Helper()
	o := electionOptions(t)
	lock, err := o.lock(client)
	if err != nil {
		t.Fatal(err)
	}
	return o.elected(ctx, lock, leaderelection.NewLeaderHealthzAdaptor(time.Second), run)
}

func holder(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("ns").Get(context.Background(), defaultLease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestLeaseIsReleasedAfterTheWork(t *testing.T) {
	client := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	err := elect(t, ctx, client, func(work context.Context) {
		cancel()
		<-work.Done()
		if holder(t, client) == "" {
			t.Error("the lease was given up before the work had ended")
		}
		ended = true
	})
	if err != nil || !ended {
		t.Errorf("work ended %t, error %v", ended, err)
	}
	if got := holder(t, client); got != "" {
		t.Errorf("the lease is still held by %q", got)
	}
}

func TestLostLeaseIsAnError(t *testing.T) {
	client := fake.NewClientset()
	var outage atomic.Bool
	client.PrependReactor("*", "leases", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return outage.Load(), nil, errors.New("no connection")
	})
	err := elect(t, t.Context(), client, func(work context.Context) {
		outage.Store(true)
		<-work.Done()
	})
	if !errors.Is(err, errLeaseLost) {
		t.Errorf("error %v, want %v", err, errLeaseLost)
	}
}

func TestStandbyEndsImmediately(t *testing.T) {
	held := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: defaultLease, Namespace: "ns"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("other"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}
	client := fake.NewClientset(held)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := elect(t, ctx, client, func(context.Context) { t.Error("it works without the lease") })
	if err != nil {
		t.Errorf("error %v", err)
	}
	if got := holder(t, client); got != "other" {
		t.Errorf("the lease is held by %q, want other", got)
	}
}

func TestLeaseIsAcquiredAfterCacheSync(t *testing.T) {
	client := fake.NewClientset()
	o := electionOptions(t)
	lock, err := o.lock(client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &slowController{end: cancel}
	c.unfilled = func() []string {
		if c.looks >= 5 {
			return nil
		}
		leases, err := client.CoordinationV1().Leases("ns").List(context.Background(), metav1.ListOptions{})
		if err != nil || len(leases.Items) > 0 {
			t.Errorf("before the caches are filled: %d leases, error %v", len(leases.Items), err)
		}
		if c.looks++; c.looks < 5 {
			return []string{"jobs"}
		}
		return nil
	}
	err = o.work(ctx, lock, leaderelection.NewLeaderHealthzAdaptor(time.Second), manager.New(c))
	if err != nil || !c.ran {
		t.Errorf("ran: %t, looks: %d, error %v", c.ran, c.looks, err)
	}
}

// slowController has caches that are filled after a few looks.
type slowController struct {
	unfilled func() []string
	end      context.CancelFunc
	looks    int
	ran      bool
}

func (*slowController) Name() string            { return "slow" }
func (*slowController) Start(context.Context)   {}
func (c *slowController) Unfilled() []string    { return c.unfilled() }
func (c *slowController) Run(_ context.Context) { c.ran = true; c.end() }

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/version"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/manager"
)

func electionOptions(t *testing.T) *Options {
	t.Helper()
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.LeaderElection.ResourceNamespace = "ns"
	return o
}

// elect runs an election to its end, in the bubble of the test.
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
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		err := elect(t, ctx, client, func(work context.Context) {
			cancel()
			<-work.Done()
			if holder(t, client) == "" {
				t.Error("the lease was given up before the work had ended")
			}
			if got := helper.ControllerVersion(holder(t, client)); got != version.Get().GitVersion {
				t.Errorf("version of the holder: got %q, want %q", got, version.Get().GitVersion)
			}
			ended = true
		})
		if err != nil || !ended {
			t.Errorf("work ended %t, error %v", ended, err)
		}
		if got := holder(t, client); got != "" {
			t.Errorf("the lease is still held by %q", got)
		}
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// TestLeaseOfADeadLeaderIsTaken has a leader end without giving its lease up.
func TestLeaseOfADeadLeaderIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := electionOptions(t).LeaderElection
		lease, retry := settings.LeaseDuration.Duration, settings.RetryPeriod.Duration
		client := fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: defaultLease, Namespace: "ns"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("dead"), LeaseDurationSeconds: ptr.To(int32(lease.Seconds())),
				AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
			},
		})
		begun := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var after time.Duration
		err := elect(t, ctx, client, func(work context.Context) {
			after = time.Since(begun)
			cancel()
			<-work.Done()
		})
		if err != nil {
			t.Errorf("error %v", err)
		}
		// The other one looks at most a retry with its jitter after the end of the lease.
		if jitter := 22 * retry / 10; after < lease || after > lease+jitter {
			t.Errorf("the lease was taken after %v, want %v to %v", after, lease, lease+jitter)
		}
	})
}

func TestStandbyEndsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: defaultLease, Namespace: "ns"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("other"), LeaseDurationSeconds: ptr.To[int32](3600),
				AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
			},
		}
		client := fake.NewClientset(held)
		const standsBy = 5 * time.Minute
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), standsBy)
		defer cancel()
		err := elect(t, ctx, client, func(context.Context) { t.Error("it works without the lease") })
		if err != nil {
			t.Errorf("error %v", err)
		}
		if got := time.Since(begun); got != standsBy {
			t.Errorf("it ends after %v, want %v", got, standsBy)
		}
		if got := holder(t, client); got != "other" {
			t.Errorf("the lease is held by %q, want other", got)
		}
	})
}

func TestLeaseIsAcquiredAfterCacheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases, kube := fake.NewClientset(), fake.NewClientset()
		o := electionOptions(t)
		lock, err := o.lock(leases)
		if err != nil {
			t.Fatal(err)
		}
		lists := 0
		kube.PrependReactor("list", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
			held, err := leases.CoordinationV1().Leases("ns").List(context.Background(), metav1.ListOptions{})
			if err != nil || len(held.Items) > 0 {
				t.Errorf("before the caches are filled: %d leases, error %v", len(held.Items), err)
			}
			lists++
			return lists < 3, nil, apierrors.NewServiceUnavailable("away")
		})
		ctx, cancel := context.WithCancel(t.Context())
		c := &endingController{end: cancel}
		controllers := manager.New(informers.NewFactory(kube), manager.Descriptor{Name: "ending", New: func(kind *informers.Kind) (manager.Controller, error) {
			kind.Informer(informers.Need{Resource: kind.Jobs(), Transform: func(obj any) (any, error) { return obj, nil }})
			return c, nil
		}})
		controllers.Start(ctx)
		err = o.work(ctx, lock, leaderelection.NewLeaderHealthzAdaptor(time.Second), controllers)
		if err != nil || !c.ran || lists != 3 {
			t.Errorf("ran: %t, lists: %d, error %v", c.ran, lists, err)
		}
	})
}

// endingController ends the program.
type endingController struct {
	end context.CancelFunc
	ran bool
}

func (c *endingController) Run(context.Context) { c.ran = true; c.end() }

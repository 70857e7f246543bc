// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	typedv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/disaggregatedset/v1"
)

// timed is a client whose requests about scalers fail once their context has ended, as those of a real one do.
type timed struct{ versioned.Interface }

func (t timed) DisaggregatedsetV1() typedv1.DisaggregatedsetV1Interface {
	return timedGroup{t.Interface.DisaggregatedsetV1()}
}

type timedGroup struct {
	typedv1.DisaggregatedsetV1Interface
}

func (t timedGroup) DisaggregatedSetRoleScalers(namespace string) typedv1.DisaggregatedSetRoleScalerInterface {
	return timedScalers{t.DisaggregatedsetV1Interface.DisaggregatedSetRoleScalers(namespace)}
}

type timedScalers struct {
	typedv1.DisaggregatedSetRoleScalerInterface
}

func (t timedScalers) UpdateStatus(
	ctx context.Context, scaler *disaggregatedsetv1.DisaggregatedSetRoleScaler, options metav1.UpdateOptions,
) (*disaggregatedsetv1.DisaggregatedSetRoleScaler, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return t.DisaggregatedSetRoleScalerInterface.UpdateStatus(ctx, scaler, options)
}

// endsAt returns a context that ends when the controller asks for the first time for this.
func (r *rig) endsAt(t *testing.T, verb, resource string) context.Context {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	r.client.PrependReactor(verb, resource, func(clientgotesting.Action) (bool, runtime.Object, error) {
		end()
		return false, nil, nil
	})
	return ctx
}

// The time of a pass is for LeaderWorkerSets. What an autoscaler reads is stored even when it is over.
func TestScalerStatusAfterTheEndOfAPass(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=External"))
	if _, err := r.pass(t); err != nil {
		t.Fatal(err)
	}
	r.ready(t)
	r.scale(t, "llm-decode", 4)
	r.cached(t)
	r.Client = timed{r.client}
	if _, err := r.Sync(r.endsAt(t, "patch", "leaderworkersets"), key); err != nil {
		t.Error(err)
	}
	scaler, err := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml").Get(t.Context(), "llm-decode", metav1.GetOptions{})
	if err != nil || scaler.Status.Replicas != 1 {
		t.Errorf("status %+v (%v)", scaler.Status, err)
	}
}

// Slices that a pass has not come to are left to the next one, which must come.
func TestPassAfterAnInterruptedOne(t *testing.T) {
	ds := newSet("prefill=1", "decode=1")
	ds.Spec.Slices = ptr.To[int32](3)
	r := newRig(t, ds)
	r.cached(t)
	due, err := r.Sync(r.endsAt(t, "create", "leaderworkersets"), key)
	if err != nil || !due.Continue {
		t.Errorf("due %+v (%v), want to continue", due, err)
	}
	r.stabilize(t)
	if due, err := r.Sync(t.Context(), key); err != nil || due.Continue {
		t.Errorf("at rest: due %+v (%v)", due, err)
	}
}

// A pass whose time is over before it has written anything is tried again, although nothing was refused.
func TestPassThatWritesNothingInItsTime(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.recreate(t, same)
	if due, err := r.Sync(r.endsAt(t, "get", "disaggregatedsets"), key); err == nil {
		t.Errorf("due %+v, and no error", due)
	}
	r.stabilize(t)
	if due, err := r.Sync(r.endsAt(t, "get", "disaggregatedsets"), key); err != nil {
		t.Errorf("at rest: due %+v (%v)", due, err)
	}
}

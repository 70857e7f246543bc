// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/quota"
)

const (
	// quotaPercent is the part of the quota that creations may use.
	quotaPercent = 90
	// allocatedPercent bounds the file, whose free pages count for the quota. Maintenance shrinks it long before.
	allocatedPercent = 95
)

// ReasonInsufficientStorage is the reason of refusals, whose code is 507.
const ReasonInsufficientStorage metav1.StatusReason = "InsufficientStorage"

// Store is an etcd whose use is known: the embedded one.
type Store interface {
	Usage() quota.Usage
	// Full reports whether writes are refused.
	Full() bool
	// Refused is called when a write was refused because of the quota.
	Refused()
}

// Guard decides whether there is space for more.
type Guard struct {
	// store is nil when etcd is an external one. What that has used is not known, only that it refused a write.
	store   Store
	refused atomic.Bool
	memory  *Memory
}

// New returns the guard of memory and of a store, which is nil for an external etcd.
func New(store Store, memory *Memory) *Guard {
	return &Guard{store: store, memory: memory}
}

// shortage is why something is refused.
type shortage struct {
	// reason is a label of metrics.
	reason, message string
}

// exhausted is the shortage in which etcd refuses every write but deletions, and nil when it does not.
func (g *Guard) exhausted() *shortage {
	switch {
	case g.store != nil && g.store.Full():
		return &embeddedExhausted
	case g.store == nil && g.refused.Load():
		return &externalExhausted
	}
	return nil
}

var (
	embeddedExhausted = shortage{reason: reasonQuota, message: "the embedded etcd has used up its quota and accepts only deletions: " +
		"delete JobSets in the background (the default of kubectl delete), or raise --embedded-etcd-quota-bytes"}
	externalExhausted = shortage{reason: reasonQuota, message: "etcd has used up its space quota and accepts only deletions: " +
		"delete JobSets in the background (the default of kubectl delete), then compact and defragment etcd and end its alarm, or raise its " +
		"quota"}
)

// written explains the refusal of an etcd that is full.
func (g *Guard) written(err error) error {
	full := errors.Is(err, rpctypes.ErrNoSpace)
	if err == nil || full {
		g.refused.Store(full)
	}
	switch {
	case !full:
		return err
	case g.store == nil:
		return refuse(&externalExhausted)
	}
	g.store.Refused()
	return refuse(&embeddedExhausted)
}

// low is the shortage in which nothing may grow: creations and changes of spec are refused.
func (g *Guard) low() *shortage {
	if g.store != nil {
		usage := g.store.Usage()
		if usage.InUseBytes >= usage.QuotaBytes/100*quotaPercent || usage.AllocatedBytes >= usage.QuotaBytes/100*allocatedPercent {
			return &shortage{reason: reasonReserve, message: fmt.Sprintf(
				"the embedded etcd uses %d%% of its quota of %d MiB, and the rest is reserved for "+
					"deletions and status: delete JobSets, or raise --embedded-etcd-quota-bytes", percent(usage.AllocatedBytes, usage.QuotaBytes),
				usage.QuotaBytes>>20)}
		}
	}
	return g.memory.low(growing)
}

func percent(part, whole int64) int64 { return part * 100 / max(whole, 1) }

// grow returns an error when there is no space for something that grows.
func (g *Guard) grow() error {
	if lack := g.low(); lack != nil {
		return refuse(lack)
	}
	return nil
}

// change returns an error when there is no space for a change. Only while space is short does it matter how small that is.
func (g *Guard) change(small func() bool) error {
	lack := g.low()
	switch {
	case lack == nil:
		return nil
	case small():
		return g.touch()
	}
	return refuse(lack)
}

// touch returns an error when there is no space for another version of an object that does not grow.
func (g *Guard) touch() error {
	if lack := g.memory.low(touching); lack != nil {
		return refuse(lack)
	}
	return nil
}

func refuse(lack *shortage) error {
	refusals.WithLabelValues(lack.reason).Inc()
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: ReasonInsufficientStorage, Message: lack.message,
	}}
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permission decides when the refusals of an API mean that the controller lacks a permission. An API server
// that has just started does not know its roles yet, and refuses for some seconds what it allows afterwards. Until a
// refusal has lasted, it is not known whether the controller has the permission.
package permission

import (
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// LacksAfter is how long all requests must have been refused before the permission counts as missing.
const LacksAfter = 30 * time.Second

// Missing returns whether a request was refused because its user lacks the permission, and not by a quota, a policy or a webhook.
func Missing(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	_, rest, found := strings.Cut(err.Error(), `" cannot `)
	return found && strings.Contains(rest, ` resource "`)
}

// Series remembers since when all requests that need one permission are refused. The zero value has seen no request.
type Series struct {
	mu    sync.Mutex
	since time.Time
}

// Note remembers what became of a request: nil if it was accepted. A failure that is no refusal ends a series of
// refusals, since the server may have started again.
func (r *Series) Note(err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !apierrors.IsForbidden(err):
		r.since = time.Time{}
	case r.since.IsZero():
		r.since = now
	}
}

// Last returns whether the permission counts as missing.
func (r *Series) Last(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.since.IsZero() && now.Sub(r.since) >= LacksAfter
}

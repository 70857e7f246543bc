// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// off is the answer to every request while there is no archive.
func off() error {
	return apierrors.NewServiceUnavailable("the archive of runs is off in this server: switch it on with --archive-database")
}

// refusal returns what a client gets for an error of the store. The cause is for the log only: it may have the address of the database or
// more.
func (s *Storage) refusal(ctx context.Context, err error, name string) error {
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return apierrors.NewNotFound(api.Resource(Resource), name)
	case errors.Is(err, archive.ErrGone):
		return apierrors.NewResourceExpired("the continue token is damaged, or it belongs to a list with other selectors: list again without " +
			"continue, and keep namespace and selectors for the other pages")
	case errors.Is(ctx.Err(), context.Canceled):
		return apierrors.NewTimeoutError("the request ended before the archive database had answered", 0)
	}
	s.causes.log(ctx, err)
	return apierrors.NewServiceUnavailable("the archive database does not answer: try again later; the log of jobset-apiserver has the cause")
}

// interval is the least time between two causes in the log.
const interval = time.Minute

// causes logs why the store does not answer, once a minute at most: clients repeat their requests.
type causes struct {
	now    func() time.Time
	mutex  sync.Mutex
	logged time.Time
}

func (c *causes) log(ctx context.Context, cause error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	if !c.logged.IsZero() && now.Sub(c.logged) < interval {
		return
	}
	c.logged = now
	klog.FromContext(ctx).Error(cause, "The archive database does not answer")
}

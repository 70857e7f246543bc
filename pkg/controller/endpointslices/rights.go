// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"errors"
	"sync"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
)

// right is the permission for an operation in a namespace.
type right struct{ namespace, operation string }

// rights are the permissions that are missing at present. A kube-apiserver that has just started refuses some requests
// for a few seconds and allows them afterwards. If such refusals counted at once, every Service with a change in these
// seconds would be given to the cluster, and taken back a minute later.
type rights struct {
	mu      sync.Mutex
	refused map[right]*permission.Series
}

func newRights() *rights { return &rights{refused: map[right]*permission.Series{}} }

// note notes what became of a request, and returns whether the permission for it counts as missing.
func (r *rights) note(of right, err error, now time.Time) (missing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !permission.Missing(err) {
		delete(r.refused, of)
		return false
	}
	if r.refused[of] == nil {
		r.refused[of] = &permission.Series{}
	}
	r.refused[of].Note(err, now)
	return r.refused[of].Last(now)
}

// noteAnswer notes what became of a request, and returns its error. If the controller lacks the permission, that is a
// failure like that of a server which does not answer, and no refusal, until it has lasted.
func (c *Syncer) noteAnswer(obs *observed, operation string, err error) error {
	if missing := c.rights.note(right{obs.key.Namespace, operation}, err, c.Clock.Now()); !missing && permission.Missing(err) {
		return errors.New(err.Error())
	}
	return err
}

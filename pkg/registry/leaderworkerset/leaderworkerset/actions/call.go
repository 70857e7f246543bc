// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// maxUserBytes is the longest name of a user in the status.
const maxUserBytes = 256

// Call is who asks, and when.
type Call struct {
	// User is the name of who asks.
	User string
	// Now is the time of the request.
	Now time.Time
}

// user is bounded, as the status is.
func (c Call) user() string { return text.Truncate(text.Line(c.User), maxUserBytes) }

// now is the time in the precision of the status, so that what is stored equals what the first response says.
func (c Call) now() metav1.MicroTime {
	return metav1.MicroTime{Time: c.Now.Truncate(time.Microsecond)}
}

// ago says how long ago something happened, after a space; nothing if that is not known.
func (c Call) ago(when *metav1.MicroTime) string { return action.Ago(when, c.Now) }

// record makes an action the last one.
func record(set *leaderworkerset.LeaderWorkerSet, last leaderworkerset.LastAction, call Call) {
	last.User, last.Time = call.user(), ptr.To(call.now())
	set.Status.LastAction = &last
}

// recorded is the response to the request that became the last action.
func recorded(set *leaderworkerset.LeaderWorkerSet, message string) *batch.LeaderWorkerSetActionStatus {
	last := set.Status.LastAction
	return &batch.LeaderWorkerSetActionStatus{UID: set.UID, Revision: last.Revision, User: last.User, Time: last.Time.DeepCopy(),
		Message: message}
}

// nothing is the response to a request for what is so already.
func nothing(set *leaderworkerset.LeaderWorkerSet, message string) *batch.LeaderWorkerSetActionStatus {
	return &batch.LeaderWorkerSetActionStatus{UID: set.UID, Message: message}
}

// asLast returns whether the last action of a set is this one.
func asLast(set *leaderworkerset.LeaderWorkerSet, action leaderworkerset.Action) bool {
	return set.Status.LastAction != nil && set.Status.LastAction.Action == action
}

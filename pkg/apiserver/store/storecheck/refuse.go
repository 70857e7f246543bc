// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// maxNote is the longest note of an event, in bytes.
	maxNote = 1024
	// ownersInterval is how often the objects are counted whose owners keep the server from serving.
	ownersInterval = 10 * time.Second
	// ownersTimeout bounds the search for objects whose owners the store does not have.
	ownersTimeout = time.Minute
	// ownersShare bounds the time that repeated searches take: one of so many parts.
	ownersShare = 20
)

// refusal is what this server refuses, and what it knows about it.
type refusal struct {
	witness.Refusal
	// uuids of the key and of the record belong to what was found.
	keyUUID, recordUUID string
	// counted is when the losses were counted, and took how long that took.
	counted time.Time
	took    time.Duration
	report  *owners.Report
	// definitions keep a first start from being one.
	definitions []owners.Definition
	// listed is the count whose owners were published.
	listed time.Time
	// published is whether the record had it once.
	published bool
}

// finds returns whether the refusal is about what was found now.
func (r *refusal) finds(s *observation, reason witness.Reason) bool {
	return r != nil && r.Reason == reason && r.Revision == s.keyRevision() && r.keyUUID == s.keyUUID() && r.recordUUID == s.recordUUID()
}

func (s *observation) keyUUID() string {
	if s.key == nil {
		return ""
	}
	return s.key.UUID
}

func (s *observation) recordUUID() string {
	if s.record == nil {
		return ""
	}
	return s.record.UUID
}

// refuse publishes why the store is not served, unless an administrator has accepted it. The report is nil if the losses
// were not counted yet.
func (g *Guard) refuse(ctx context.Context, s *observation, reason witness.Reason, found *finding) error {
	if s.unfinished(reason) {
		return g.finish(ctx, s)
	}
	fresh := !g.refusal.finds(s, reason)
	if fresh {
		g.refusal = &refusal{keyUUID: s.keyUUID(), recordUUID: s.recordUUID()}
		g.refusal.Refusal = witness.Refusal{Reason: reason, Server: g.server, NewUUID: g.propose(ctx, reason), Revision: s.keyRevision(),
			Served: g.served.holds()}
		g.setReason(reason)
	}
	g.count(ctx, s.routedHere(), found)
	g.describe(s)
	if fresh {
		klog.FromContext(ctx).Error(nil, "The store is refused", "reason", reason, "message", g.refusal.Message)
	}
	if s.record != nil && reason != witness.ReasonNewerFormat && s.record.Accepts(&g.refusal.Refusal) {
		return g.adopt(ctx, s)
	}
	return g.publish(ctx, s, false)
}

// describe brings the message of the refusal up to date.
func (g *Guard) describe(s *observation) { g.refusal.Message = g.message(g.refusal, s) }

// propose returns the UUID that the store gets if it is accepted. It is kept in the store, so that all servers of this
// store propose the same, also after a restart, and servers of other stores another one.
func (g *Guard) propose(ctx context.Context, reason witness.Reason) string {
	id := g.newID()
	if reason == witness.ReasonNewerFormat {
		return id // it cannot be accepted, and nothing is written
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	kept, err := g.store.propose(ctx, id)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot keep the UUID that is proposed for the store; after a restart it is another one")
		return id
	}
	return kept
}

// count counts the losses, if they were not counted already. Failing to do so is no reason not to refuse.
func (g *Guard) count(ctx context.Context, groups sets.Set[string], found *finding) {
	r := g.refusal
	if found == nil && !r.due() {
		return
	}
	if found == nil {
		start := time.Now()
		ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
		defer cancel()
		if report, err := g.Owners(ctx, groups); err == nil {
			found = &finding{Report: report, took: time.Since(start), definitions: r.definitions}
		} else {
			klog.FromContext(ctx).Error(err, "Cannot count the objects whose owners the store does not know")
			r.took = time.Since(start)
		}
	} else {
		r.definitions = found.definitions
	}
	r.counted, r.report = time.Now(), nil
	losses, jobs := witness.Losses{Unknown: true}, []string(nil)
	if found != nil {
		r.took, r.report = found.took, &found.Report
		losses, jobs = found.Losses()
	}
	losses.Record(&r.Refusal, jobs)
}

// list publishes the owners that are lost, for `store release-orphans`, once for each count. It comes before the
// refusal, so that the list of what is shown exists.
func (g *Guard) list(ctx context.Context) error {
	r := g.refusal
	if r.report == nil || r.listed.Equal(r.counted) || (len(r.report.Owners) == 0 && r.listed.IsZero()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err := owners.Publish(ctx, g.Main.CoreV1(), witness.LostOwners{
		NewUUID: r.NewUUID, Revision: r.Revision, Owners: r.report.Owners, More: r.report.More,
	})
	if err == nil {
		r.listed = r.counted
	}
	return err
}

// due returns whether the losses should be counted again.
func (r *refusal) due() bool {
	interval := confirmInterval
	if r.Reason == witness.ReasonUnknownOwners || r.Reason == witness.ReasonCustomResources {
		interval = ownersInterval // the server serves when they are gone, or imported
	}
	return time.Since(r.counted) >= max(interval, ownersShare*r.took)
}

// publish writes the refusal into the record when it is new, and confirms it from time to time. The refusal of a server with another store
// stays as long as that server confirms it: an administrator could not accept what changes all the time.
func (g *Guard) publish(ctx context.Context, s *observation, now bool) error {
	r := &g.refusal.Refusal
	record := s.record
	if record == nil {
		record = &witness.Record{}
	}
	if g.ofAnother(record.Refusal) || !now && same(record.Refusal, r) && g.unconfirmed(record.Refusal) < confirmInterval {
		return nil
	}
	r.Time = metav1.NewTime(g.clock.Now())
	record.Refusal = r
	if record.Accepted != nil && !record.Accepts(r) {
		record.Accepted = nil
	}
	if err := g.list(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot publish the owners that the store does not know")
	}
	if err := g.writeRecord(ctx, s.cm, record); err != nil {
		return err
	}
	if !g.refusal.published {
		g.refusal.published = true
		g.record(true, string(r.Reason), r.Message)
	}
	return nil
}

// ofAnother returns whether another server, with another store, wrote the refusal and still confirms it.
func (g *Guard) ofAnother(refusal *witness.Refusal) bool {
	return refusal != nil && refusal.NewUUID != g.refusal.NewUUID && refusal.Server != g.server && !g.abandoned(refusal)
}

func same(stored, r *witness.Refusal) bool {
	return stored != nil && stored.NewUUID == r.NewUUID && stored.Message == r.Message && stored.JobsAtStake == r.JobsAtStake &&
		stored.Served == r.Served && slices.Equal(stored.Jobs, r.Jobs) &&
		equality.Semantic.DeepEqual(stored.AtStake, r.AtStake)
}

// endRefusal takes a refusal of this store out of the record, and one of a server before this one. That of a server
// with another store stays.
func (g *Guard) endRefusal(ctx context.Context, s *observation) error {
	if s.record == nil || s.record.Refusal == nil {
		return nil
	}
	old := s.record.Refusal
	if old.Server != g.server && !g.abandoned(old) {
		proposed, err := g.store.proposal(ctx)
		if err != nil || proposed != old.NewUUID {
			return err
		}
	}
	s.record.Refusal, s.record.Accepted = nil, nil
	if err := g.writeRecord(ctx, s.cm, s.record); err != nil {
		return err
	}
	g.record(false, "StoreServed", "The store is the right one again.")
	return nil
}

// record reports an event on the ConfigMap.
func (g *Guard) record(warning bool, reason, note string) {
	g.Recorder.Record(Event(warning, reason, note))
}

// Event returns an event on the ConfigMap of the witness, in which administrators see what happens to the store.
func Event(warning bool, reason, note string) provider.Event {
	return provider.Event{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: witness.Namespace, Name: witness.Name},
		Action:    "CheckStore", Reason: reason, Note: text.TruncateWithEllipsis(note, maxNote), Warning: warning,
	}
}

const (
	// confirmInterval is how often a refusal is confirmed in the record.
	confirmInterval = time.Minute
	// abandonedAfter is how long a server must have seen no new confirmation of a refusal before it takes the refusal as abandoned.
	abandonedAfter = 3 * confirmInterval
)

// confirmation is one of a refusal in the record, and when this server saw it first.
type confirmation struct {
	server, newUUID string
	time            metav1.Time
	seen            time.Time
}

// observe notes which confirmation the record has.
func (g *Guard) observe(record *witness.Record) {
	if record == nil || record.Refusal == nil {
		g.confirmation = confirmation{}
		return
	}
	if !g.confirmation.of(record.Refusal) {
		r := record.Refusal
		g.confirmation = confirmation{server: r.Server, newUUID: r.NewUUID, time: r.Time, seen: g.clock.Now()}
	}
}

func (c *confirmation) of(r *witness.Refusal) bool {
	return c.server == r.Server && c.newUUID == r.NewUUID && c.time.Equal(&r.Time)
}

// unconfirmed returns for how long this server has seen the refusal in the record without a new confirmation. The time in the record comes
// from the clock of another server, which may be wrong by any amount: it only distinguishes one confirmation from the next.
func (g *Guard) unconfirmed(refusal *witness.Refusal) time.Duration {
	if !g.confirmation.of(refusal) {
		return 0
	}
	return g.clock.Since(g.confirmation.seen)
}

// abandoned returns whether no server confirms the refusal any more.
func (g *Guard) abandoned(refusal *witness.Refusal) bool {
	return refusal != nil && g.unconfirmed(refusal) > abandonedAfter
}

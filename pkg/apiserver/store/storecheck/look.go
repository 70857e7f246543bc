// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// lookTimeout bounds each question to the main cluster or etcd.
const lookTimeout = 10 * time.Second

// errAgain is returned when another server or a user has changed a half of the witness in between.
var errAgain = errors.New("a half of the witness has changed in between")

// observation is what was found in one look.
type observation struct {
	cluster types.UID
	// cm and record are nil if there is no ConfigMap.
	cm     *corev1.ConfigMap
	record *witness.Record
	// key is nil if there is none.
	key *witness.Found
	// routes says for each group of the server who answers for it.
	routes map[string]Route
}

// keyRevision is 0 without a key.
func (s *observation) keyRevision() int64 {
	if s.key == nil {
		return 0
	}
	return s.key.ModRevision
}

// look reads both halves. The record comes first: the key is written before the record, so that it is never behind a
// record that was read before.
func (g *Guard) look(ctx context.Context) (*observation, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	namespace, err := g.Main.CoreV1().Namespaces().Get(ctx, witness.Namespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s of the main cluster: %w", witness.Namespace, err)
	}
	s := &observation{cluster: namespace.UID}
	if s.cm, s.record, err = g.readRecord(ctx); err != nil {
		return nil, err
	}
	if s.routes, err = g.Routes(ctx); err != nil {
		return nil, err
	}
	s.key, err = g.store.read(ctx)
	return s, err
}

func (g *Guard) readRecord(ctx context.Context) (*corev1.ConfigMap, *witness.Record, error) {
	cm, err := g.Main.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		g.observe(nil)
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s of the main cluster: %w", witness.Namespace, witness.Name, err)
	}
	record, err := witness.Read(cm)
	g.observe(record)
	return cm, record, err
}

// writeRecord stores the record in the ConfigMap that was read, or creates one. It returns errAgain if the ConfigMap is another one by now.
func (g *Guard) writeRecord(ctx context.Context, cm *corev1.ConfigMap, record *witness.Record) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	maps := g.Main.CoreV1().ConfigMaps(witness.Namespace)
	create := cm == nil
	if create {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: witness.Name, Namespace: witness.Namespace,
			Labels: labels()}}
	}
	cm = cm.DeepCopy()
	err := record.Write(cm)
	switch {
	case err != nil:
		return err
	case create:
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	default:
		_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || (!create && apierrors.IsNotFound(err)) {
		return errAgain
	}
	if create && apierrors.IsForbidden(err) {
		return fmt.Errorf("ConfigMap %[1]s/%[2]s of the main cluster does not exist, and the server may not create it; apply the manifests of "+
			"the server, or run kubectl -n %[1]s create configmap %[2]s: %[3]w", witness.Namespace, witness.Name, err)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s of the main cluster: %w", witness.Namespace, witness.Name, err)
	}
	return nil
}

// writeKey stores the key in place of the one that was read. It returns errAgain if that is another one by now.
func (g *Guard) writeKey(ctx context.Context, s *observation, key *witness.Key) (revision int64, err error) {
	revision, err = g.store.write(ctx, key, s.keyRevision())
	if err == nil && revision == 0 {
		err = errAgain
	}
	return revision, err
}

// turn looks once and does what follows.
func (g *Guard) turn(ctx context.Context) error {
	s, err := g.look(ctx)
	if err != nil {
		return err
	}
	if g.served.holds() {
		if err := g.mark(ctx, s); err != nil {
			return err
		}
	}
	switch step, reason := witness.Decide(s.key, s.record, s.cluster); step {
	case witness.StepServe:
		return g.serveMembers(ctx, s)
	case witness.StepFirst, witness.StepRecord:
		return g.claim(ctx, s)
	default:
		return g.refuse(ctx, s, reason, nil)
	}
}

// serve lets the server answer. A server that had to stop must not answer again.
func (g *Guard) serve(ctx context.Context, s *observation) error {
	if err := g.endRefusal(ctx, s); err != nil {
		return err
	}
	if g.served.holds() {
		return ErrFresh
	}
	g.mu.Lock()
	g.known = known{uuid: s.key.UUID, cluster: s.cluster, key: s.key.ModRevision, revision: s.key.Revision, groups: s.key.Groups}
	g.mu.Unlock()
	g.refusal = nil
	if err := g.beginGroups(ctx, s); err != nil {
		return err
	}
	g.setReason("")
	g.served.set()
	klog.FromContext(ctx).Info("The store is the one of this cluster", "uuid", s.key.UUID, "revision", s.key.Revision)
	return nil
}

// claim takes a store for this installation that has no record, and no key either at the first start.
func (g *Guard) claim(ctx context.Context, s *observation) error {
	for _, reason := range []witness.Reason{witness.ReasonUnknownOwners, witness.ReasonCustomResources} {
		if g.refusal.finds(s, reason) && !g.refusal.due() {
			return g.refuse(ctx, s, reason, nil)
		}
	}
	groups, err := g.claimed(ctx, s)
	if err != nil {
		return err
	}
	found, err := g.find(ctx, sets.KeySet(groups).Intersection(s.routedHere()), s.key == nil)
	if err != nil {
		return err
	}
	if reason := found.reason(s.key == nil); reason != "" {
		return g.refuse(ctx, s, reason, found)
	}
	if losses, _ := found.Losses(); losses.Any() {
		klog.FromContext(ctx).Info("The store does not know the owners of some objects, which the garbage collector deletes", "objects",
			losses.String(), "owned", found.Owned())
	}
	key := g.newKey(g.newID(), s.cluster)
	if s.key != nil {
		key.UUID = s.key.UUID
	}
	key.Groups = groups
	revision, err := g.writeKey(ctx, s, key)
	if err != nil {
		return err
	}
	err = g.writeRecord(ctx, s.cm, &witness.Record{UUID: key.UUID, Floor: revision, Groups: key.Groups, Cluster: g.Cluster})
	switch {
	case s.mayServeWithout(err):
		s.key = &witness.Found{Key: *key, ModRevision: revision, Revision: revision}
		klog.FromContext(ctx).Error(err, "Cannot write the record of the store; an older copy of the store would not be noticed at the next "+
			"start")
		return g.serve(ctx, s)
	case err != nil:
		return err
	}
	klog.FromContext(ctx).Info("This store is now the one of this cluster", "uuid", key.UUID, "owned", found.Owned())
	return errAgain // both halves are read again, as at each start
}

// claimed returns the groups that are looked at with the store, all of which are at a first start. If only the record is missing, they are
// those of the key: the others were not served, or were refused, and are looked at one by one.
func (g *Guard) claimed(ctx context.Context, s *observation) (witness.Groups, error) {
	switch {
	case s.key == nil:
		return s.listed(s.routedHere()), nil
	case s.key.Groups != nil:
		return s.key.Groups, nil
	}
	groups := sets.New[string]()
	for group := range s.routedHere() {
		created, err := g.Created(ctx, group)
		if err != nil {
			return nil, err
		}
		if created {
			groups.Insert(group)
		}
	}
	return s.listed(groups), nil
}

// mayServeWithout returns whether the store is served although its record could not be written. A user deleted the ConfigMap, which the
// server may not create; but the key says that the store belongs to this cluster, so this must not end the service.
func (s *observation) mayServeWithout(err error) bool {
	return s.key != nil && s.cm == nil && apierrors.IsForbidden(err)
}

// finding is what keeps a store from being taken for the one of this installation.
type finding struct {
	owners.Report
	// definitions are looked for at a first start only.
	definitions []owners.Definition
	took        time.Duration
}

// find looks at groups, which are served for the first time if first is true.
func (g *Guard) find(ctx context.Context, groups sets.Set[string], first bool) (*finding, error) {
	start := time.Now()
	report, err := g.Owners(ctx, groups)
	if err != nil {
		return nil, fmt.Errorf("looking for objects whose owners the store does not know: %w", err)
	}
	f := &finding{Report: report}
	if first {
		if f.definitions, err = g.Definitions(ctx, groups); err != nil {
			return nil, err
		}
	}
	f.took = time.Since(start)
	return f, nil
}

// reason returns why the store is refused; it is empty if it is not. At a first start nothing may be lost. A store that
// was served before, and whose record was deleted, may lack the owners of a few objects without pods or data, which are about to be
// deleted with them.
func (f *finding) reason(first bool) witness.Reason {
	switch {
	case len(f.definitions) > 0:
		return witness.ReasonCustomResources
	case first && f.Lost() > 0, !f.Tolerable():
		return witness.ReasonUnknownOwners
	}
	return ""
}

func (g *Guard) newKey(uuid string, cluster types.UID) *witness.Key {
	return &witness.Key{UUID: uuid, ClusterUID: cluster, Format: witness.Format, Version: g.Version}
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "jobset-apiserver"}
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// joinTimeout bounds an attempt to join, and joinPause is between two attempts, and between two looks at a member that starts.
	joinTimeout, joinPause = 5 * time.Second, 500 * time.Millisecond
	// statusTimeout is how long each of the other members has to answer the one that makes a new store, or replaces one.
	statusTimeout = time.Second
)

// ErrOtherCluster is returned when a data directory belongs to another cluster than the one that the witness knows.
var ErrOtherCluster = errors.New("belongs to another cluster")

// ErrAlone is returned by a member without data that belongs to a cluster of which too few members answer.
var ErrAlone = errors.New("the data directory is empty, and too few of the other members answer")

// waitError is why a member cannot start yet. The same attempt may succeed later.
type waitError struct{ error }

// Unwrap returns the reason.
func (e *waitError) Unwrap() error { return e.error }

func notYet(format string, args ...any) error { return &waitError{fmt.Errorf(format, args...)} }

// Step is a change of the members of a cluster that a member makes because it joins.
type Step string

// Steps.
const (
	// StepRemoved: the former member of this host, whose data were lost, was removed.
	StepRemoved Step = "StoreMemberRemoved"
	// StepAdded: this member was added as a learner.
	StepAdded Step = "StoreMemberAdded"
	// StepPromoted: this member has the data of the others, and has a vote from now on.
	StepPromoted Step = "StoreMemberPromoted"
)

// Installation is what a member asks and tells while it starts.
type Installation struct {
	// Read returns the record of the witness; nil if there is none.
	Read func(context.Context) (*witness.Record, error)
	// Wait takes what the member waits for.
	Wait func(error)
	// Tell takes the steps that change the cluster, with a sentence for administrators.
	Tell func(step Step, note string)
}

// StartMember runs a member of a cluster until Close is called. It returns when the member serves and has a vote.
//
// Only the first member founds a cluster, and only if the witness knows no store. So there is never a second cluster: a member without
// data joins the cluster that the witness knows, as a learner that is promoted when it has the data of the others. If that cluster has a
// member of the same host, the data of that one were lost, and it is removed before. A member with data starts with them, and must then
// be of that cluster.
func (s *Server) StartMember(ctx context.Context, i Installation) error {
	for {
		record, err := i.Read(ctx)
		waits := err != nil
		if err == nil {
			err = s.enter(ctx, record, i)
			waits = errors.As(err, new(*waitError))
		}
		if err == nil {
			break
		}
		if !waits {
			return err
		}
		i.Wait(err)
		if err := pause(ctx); err != nil {
			return err
		}
	}
	if err := s.awaitVote(ctx, i); err != nil {
		return err
	}
	s.serve(ctx)
	return nil
}

// enter starts the member as the record and its data allow it.
func (s *Server) enter(ctx context.Context, record *witness.Record, i Installation) error {
	cfg, c, joins := embedConfig(s.config, s.log), s.config.Cluster, false
	switch {
	case wal.Exist(filepath.Join(cfg.Dir, "member", "wal")):
	case record.Adopted() && record.Cluster != nil:
		initial, err := s.join(ctx, record.Cluster.ID, i)
		if err != nil {
			return err
		}
		cfg.InitialCluster, cfg.ClusterState, joins = initial, embed.ClusterStateFlagExisting, true
	case c.Ordinal > 0:
		return notYet("%s has to start first", c.name(0))
	default: // if the installation had a store with one member, this one is empty, and is refused before anything is served
		if err := c.checkAlone(ctx); err != nil {
			return err
		}
	}
	s.gate.configure(cfg)
	started, err := embed.StartEtcd(cfg)
	if err != nil {
		err = fmt.Errorf("starting the embedded etcd in %s: %w", s.config.DataDir, err)
		if joins { // the members that were asked may not know this one yet
			err = &waitError{err}
		}
		return err
	}
	s.etcd = started
	s.gate.open(started.Server)
	return s.checkData(record)
}

// checkData returns an error if the member that was started is another one than it must be. The store of a single member, which may have
// been restored, may become the first member of a cluster. Whether it is the store of this installation is not decided here.
func (s *Server) checkData(record *witness.Record) error {
	running, c, dir := s.etcd.Server, s.config.Cluster, s.config.DataDir
	member := running.Cluster().Member(running.MemberID())
	switch single := member != nil && isSingle(member.PeerURLs); {
	case single && c.Ordinal > 0:
		return fmt.Errorf("%s has the data of a store with one member, which only %s may have", dir, c.name(0))
	case single && s.ClusterID() == sharedID:
		return fmt.Errorf("%s has a store that an earlier version has made, whose ID is not its own: back it up and restore the backup, and the "+
			"store gets one", dir)
	case single:
		return nil
	case record.Adopted() && record.Cluster != nil && s.ClusterID() != record.Cluster.ID:
		return fmt.Errorf("%s %w: %s, but %s/%s in the main cluster names %s", dir, ErrOtherCluster, s.ClusterID(), witness.Namespace,
			witness.Name, record.Cluster.ID)
	}
	if address := c.url(c.Ordinal, peerPort); member != nil && !slices.Contains(member.PeerURLs, address) {
		return fmt.Errorf("%s has the data of the member at %s, not %s", dir, strings.Join(member.PeerURLs, " and "), address)
	}
	return nil
}

// sharedID is the ID of all stores with one member that earlier versions have made.
const sharedID = "1181966a61be12b1"

func isSingle(peerURLs []string) bool { return len(peerURLs) == 1 && peerURLs[0] == peerURL.String() }

// checkAlone returns an error if another member answers, which has a store then: a user has deleted the record of it.
func (c *Cluster) checkAlone(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.Close()
	for _, endpoint := range c.others() {
		bounded, cancel := context.WithTimeout(ctx, statusTimeout)
		_, err := client.Status(bounded, endpoint)
		cancel()
		if err == nil {
			return notYet("the data directory is empty, and %s has a store that %s/%s in the main cluster does not name: create that ConfigMap, "+
				"and the servers of the other members write it", endpoint, witness.Namespace, witness.Name)
		}
	}
	return nil
}

func (i Installation) tell(ctx context.Context, step Step, member uint64, format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	klog.FromContext(ctx).Info(note, "member", types.ID(member), "step", step)
	i.Tell(step, note)
}

// client returns a client of the other members.
func (c *Cluster) client() (*clientv3.Client, error) {
	settings, err := members.TLS(c.Transport())
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: c.others(), TLS: settings, DialTimeout: joinTimeout, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the other members: %w", err)
	}
	return client, nil
}

// awaitVote waits until the member serves and has a vote.
func (s *Server) awaitVote(ctx context.Context, i Installation) error {
	for {
		select {
		case <-s.etcd.Server.ReadyNotify():
			if !s.etcd.Server.IsLearner() {
				return s.grow(ctx)
			}
			id := uint64(s.etcd.Server.MemberID())
			if _, err := s.etcd.Server.PromoteMember(ctx, id); err != nil {
				i.Wait(fmt.Errorf("this member has no vote yet: %w", err))
			} else {
				i.tell(ctx, StepPromoted, id, "%s has the data of the other members of the embedded etcd, and has a vote from now on.",
					s.etcd.Config().Name)
			}
		case err := <-s.etcd.Err():
			return fmt.Errorf("the embedded etcd stopped: %w", err)
		case <-s.etcd.Server.StopNotify():
			return errors.New("the embedded etcd stopped: the other members may have removed this one")
		default:
			i.Wait(errors.New("more than half of the members must run"))
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// grow makes the only member of a store one that others can reach.
func (s *Server) grow(ctx context.Context) error {
	running, c := s.etcd.Server, s.config.Cluster
	member := running.Cluster().Member(running.MemberID())
	if member == nil || !isSingle(member.PeerURLs) {
		return nil
	}
	changed := membership.Member{ID: member.ID, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{c.url(c.Ordinal, peerPort)}}}
	if _, err := running.UpdateMember(ctx, changed); err != nil {
		return fmt.Errorf("making the store with one member in %s one of several members: %w", s.config.DataDir, err)
	}
	klog.FromContext(ctx).Info("The store with one member can have several from now on", "member", member.ID, "cluster", s.ClusterID())
	return nil
}

// BacksUp returns whether this member is the one whose server backs the store up: the first follower that answers, by ordinal. answers
// reports whether the member at an address for clients answers requests.
func (s *Server) BacksUp(answers func(address string) bool) bool {
	c, running := s.config.Cluster, s.etcd.Server
	if c == nil || len(running.Cluster().Members()) == 1 {
		return true
	}
	follows := func(address string) bool {
		for _, member := range running.Cluster().Members() {
			if slices.Contains(member.PeerURLs, address) {
				return !member.IsLearner && member.ID != running.Leader()
			}
		}
		return false
	}
	for ordinal := range c.Hosts {
		switch {
		case !follows(c.url(ordinal, peerPort)):
		case ordinal == c.Ordinal:
			return true
		case answers(c.Client(ordinal)):
			return false
		}
	}
	return false
}

// ClusterID names the cluster of a member that has been started, in the form of etcdctl. It is empty for a single member.
func (s *Server) ClusterID() string {
	if s.config.Cluster == nil {
		return ""
	}
	return s.etcd.Server.Cluster().ID().String()
}

// Members returns the members of the cluster, by their names, if this member is the leader, and nil otherwise: one server reports them.
func (s *Server) Members() (all []witness.Member) {
	c, running := s.config.Cluster, s.etcd.Server
	if c == nil || running.Leader() != running.MemberID() {
		return nil
	}
	for _, member := range running.Cluster().Members() {
		all = append(all, witness.Member{Name: c.nameOf(member.ID, member.PeerURLs), ID: member.ID.String(), Learner: member.IsLearner})
	}
	slices.SortFunc(all, func(a, b witness.Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(joinPause):
		return nil
	}
}

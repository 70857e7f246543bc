// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/quota"
)

const (
	// startTimeout bounds the time until the member serves. Recovery reads the whole write-ahead log, so it is generous.
	startTimeout = 2 * time.Minute
	// progressInterval is how often a watch without events reports the revision of the store. The default of etcd is 10 minutes, and the API
	// server compacts the store every 5.
	progressInterval = 5 * time.Second
	// maxDataDirLength leaves room for the socket's name within the 107 bytes that a unix socket address may have.
	maxDataDirLength = 90

	memberDir    = "etcd"
	clientSocket = "client.sock"

	memberName = "embedded"
)

// peerURL is part of the identity of the member only: a single member has no peers, so nothing listens for them. It does not depend
// on the directory, so that the directory may be moved.
var peerURL = url.URL{Scheme: "unix", Host: memberName}

// Config says how to run the member.
type Config struct {
	// DataDir holds everything: the member's files, its sockets and the lock. It is created when missing.
	DataDir string
	// QuotaBytes is the size of the database at which writes are refused until it was compacted and defragmented.
	QuotaBytes int64
	// DefragmentInterval is the time between two looks at the fragmentation; 0 does without maintenance.
	DefragmentInterval time.Duration
	// ProgressInterval is how often watches report the revision of the store; 0 means 5 seconds.
	ProgressInterval time.Duration
	// Ephemeral is for tests that need the data only while they run: nothing is synced to the disk, and a single member elects itself
	// within a tenth of a second.
	Ephemeral bool
	// Cluster is nil for a single member.
	Cluster *Cluster
}

// Server is a member.
type Server struct {
	config Config
	lock   *directoryLock
	log    *logCore
	etcd   *embed.Etcd
	cancel context.CancelFunc
	full   atomic.Bool
	wake   chan struct{}
	// gate makes writes wait while the leader passes its role on, and passing is held while this member does.
	gate    gate
	passing sync.Mutex
	// added is the member as which this process has joined a cluster; 0 if it has not.
	added uint64
}

// Open locks the data directory until Close is called, so that no other process uses it. It starts nothing.
func Open(config Config) (*Server, error) {
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", config.DataDir, err)
	}
	if len(dir) > maxDataDirLength {
		return nil, fmt.Errorf("%s has %d bytes, but the socket in it allows %d at most: use a shorter path", dir, len(dir), maxDataDirLength)
	}
	config.DataDir = dir
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	return &Server{config: config, lock: lock, log: newLogCore(klog.Background().WithName("etcd")), cancel: func() {},
		wake: make(chan struct{}, 1)}, nil
}

// Start runs a single member until Close is called. It returns when the member serves.
func (s *Server) Start(ctx context.Context) (err error) {
	if s.etcd, err = embed.StartEtcd(embedConfig(s.config, s.log)); err != nil {
		return fmt.Errorf("starting the embedded etcd in %s: %w", s.config.DataDir, err)
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err := <-s.etcd.Err():
		return fmt.Errorf("starting the embedded etcd in %s: %w", s.config.DataDir, err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startTimeout):
		return fmt.Errorf("the embedded etcd in %s does not serve after %s", s.config.DataDir, startTimeout)
	}
	s.serve(ctx)
	return nil
}

// serve begins what accompanies a member that serves.
func (s *Server) serve(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.log.setPhase(serving)
	if s.config.DefragmentInterval > 0 {
		m := &maintainer{
			db: s.etcd.Server.Backend(), member: s.etcd.Server, revision: s.etcd.Server.KV().Rev,
			quotaBytes: s.config.QuotaBytes, full: &s.full,
		}
		if s.config.Cluster != nil {
			m.id, m.turn = uint64(s.etcd.Server.MemberID()), s.turn
		}
		go m.run(ctx, s.config.DefragmentInterval, s.wake)
	}
	klog.FromContext(ctx).V(1).Info("Embedded etcd serves", "dataDir", s.config.DataDir, "quotaBytes", s.config.QuotaBytes)
}

// Endpoint is the address for clients within this process and for etcdctl of the same user.
func (s *Server) Endpoint() string { return Endpoint(s.config.DataDir) }

// Endpoint is the address of the member that runs in a data directory, whose path must be absolute.
func Endpoint(dataDir string) string {
	address := socketURL(dataDir, clientSocket)
	return address.String()
}

// Usage looks at the database. The member must have been started.
func (s *Server) Usage() quota.Usage {
	db := s.etcd.Server.Backend()
	return quota.Usage{QuotaBytes: s.config.QuotaBytes, AllocatedBytes: db.Size(), InUseBytes: db.SizeInUse()}
}

// Full reports whether the member refuses writes because of its quota.
func (s *Server) Full() bool { return s.full.Load() }

// Refused reports that etcd rejected a write because of its quota: maintenance begins immediately.
func (s *Server) Refused() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wait returns why the member stopped by itself, or nil when the context ends first.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.etcd.Err():
		return fmt.Errorf("the embedded etcd stopped: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("the embedded etcd stopped")
	}
}

// Close stops the member and releases its directory. It must be called only when no client needs it any more.
func (s *Server) Close() {
	s.cancel()
	s.log.setPhase(closing)
	if s.etcd != nil {
		select {
		case <-s.etcd.Server.ReadyNotify():
			s.passOnBeforeEnd()
		default: // Close would wait for what answers clients, which begins when the member is ready, or ends with it
			s.etcd.Server.Stop()
		}
		s.etcd.Close()
	}
	s.lock.release()
}

func socketURL(dir, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(dir, name)}
}

// embedConfig describes a member, which is a single one unless the configuration has a cluster. The history of a single one is short,
// because there is no follower that could lag behind and want more than a snapshot: the library's defaults would keep up to 15,000 writes
// in memory. A write may have 1.5 MiB, and a start reads all writes since the last snapshot into memory.
func embedConfig(config Config, log *logCore) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = memberName
	cfg.Dir = filepath.Join(config.DataDir, memberDir)
	cfg.ListenClientUrls = []url.URL{socketURL(config.DataDir, clientSocket)}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{peerURL}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.InitialClusterToken = newToken()
	cfg.EnableGRPCGateway = false
	cfg.QuotaBackendBytes = config.QuotaBytes
	cfg.SnapshotCount = 250
	cfg.SnapshotCatchUpEntries = 10
	cfg.MaxWalFiles = 3
	cfg.MaxSnapFiles = 3
	// The API server compacts by itself. This is the second line for the case that its compaction is switched off.
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = "15m"
	// The watch cache of a kind without writes learns the revision of the store by this. Without it, what watches such a kind has to list
	// all of it again once the store was compacted.
	cfg.WatchProgressNotifyInterval = cmp.Or(config.ProgressInterval, progressInterval)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(log))
	switch {
	case config.Cluster != nil:
		config.Cluster.configure(cfg)
	case config.Ephemeral:
		cfg.TickMs, cfg.ElectionMs = 10, 100
	}
	cfg.UnsafeNoFsync = config.Ephemeral
	return cfg
}

// newToken returns what makes the IDs of a new store and its members differ from those of all others. A member that has data does not use
// it.
func newToken() string { return uuid.NewString() }

// ensurePrivate creates the directory when it is missing and takes it away from everybody but its owner.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("making directory private: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Errorf("directory %s has mode %04o and belongs to another user: give it to the user of this process or set mode 0700", dir,
			mode)
	}
	return nil
}

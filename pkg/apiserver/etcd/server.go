// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/klog/v2"
)

const (
	// startTimeout bounds the time until the member serves. Recovery reads the whole write-ahead log, so it is generous.
	startTimeout = 2 * time.Minute
	// maxDataDirLength leaves room for the socket names within the 107 bytes that a unix socket address may have.
	maxDataDirLength = 90

	memberDir    = "etcd"
	clientSocket = "client.sock"
	peerSocket   = "peer.sock"
)

// Config says how to run the member.
type Config struct {
	// DataDir holds everything: the member's files, its sockets and the lock. It is created when missing.
	DataDir string
	// QuotaBytes is the size of the database at which writes are refused until it was compacted and defragmented.
	QuotaBytes int64
	// DefragmentInterval is the time between two looks at the fragmentation of the database; 0 never defragments.
	DefragmentInterval time.Duration
}

// Server is a running member.
type Server struct {
	config Config
	lock   *directoryLock
	etcd   *embed.Etcd
	cancel context.CancelFunc
}

// Start locks the data directory and runs the member in it until Close is called. It returns when the member serves.
func Start(ctx context.Context, config Config) (*Server, error) {
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", config.DataDir, err)
	}
	if len(dir) > maxDataDirLength {
		return nil, fmt.Errorf("path %s has %d bytes, but the sockets in it allow %d at most: use a shorter path", dir, len(dir), maxDataDirLength)
	}
	config.DataDir = dir
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, lock: lock, cancel: func() {}}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) (err error) {
	if s.etcd, err = embed.StartEtcd(embedConfig(s.config)); err != nil {
		return fmt.Errorf("starting the embedded etcd in %s: %w", s.config.DataDir, err)
	}
	ctx, s.cancel = context.WithCancel(ctx)
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err := <-s.etcd.Err():
		return fmt.Errorf("starting the embedded etcd in %s: %w", s.config.DataDir, err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startTimeout):
		return fmt.Errorf("the embedded etcd in %s does not serve after %s", s.config.DataDir, startTimeout)
	}
	if s.config.DefragmentInterval > 0 {
		go runDefragmenter(ctx, s.etcd.Server.Backend(), s.config.DefragmentInterval)
	}
	klog.FromContext(ctx).Info("Embedded etcd serves", "dataDir", s.config.DataDir, "quotaBytes", s.config.QuotaBytes)
	return nil
}

// Endpoint is the address for clients within this process and for etcdctl of the same user.
func (s *Server) Endpoint() string {
	address := socketURL(s.config.DataDir, clientSocket)
	return address.String()
}

// Err reports that the member stopped by itself. It yields nothing after Close.
func (s *Server) Err() <-chan error {
	return s.etcd.Err()
}

// Close stops the member and releases its directory. It must be called only when no client needs it any more.
func (s *Server) Close() {
	s.cancel()
	if s.etcd != nil {
		s.etcd.Close()
	}
	s.lock.release()
}

func socketURL(dir, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(dir, name)}
}

// embedConfig describes a single member. Its history is short, because there is no follower that could lag behind and
// want more than a snapshot: the library's defaults would keep up to 15,000 writes in memory.
func embedConfig(config Config) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "embedded"
	cfg.Dir = filepath.Join(config.DataDir, memberDir)
	cfg.ListenClientUrls = []url.URL{socketURL(config.DataDir, clientSocket)}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.ListenPeerUrls = []url.URL{socketURL(config.DataDir, peerSocket)}
	cfg.AdvertisePeerUrls = cfg.ListenPeerUrls
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false
	cfg.QuotaBackendBytes = config.QuotaBytes
	cfg.SnapshotCount = 2000
	cfg.SnapshotCatchUpEntries = 100
	cfg.MaxWalFiles = 3
	cfg.MaxSnapFiles = 3
	// The API server compacts by itself. This is the second line for the case that its compaction is switched off.
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = "15m"
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(klog.Background().WithName("etcd")))
	return cfg
}

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
		return fmt.Errorf("directory %s has mode %04o and belongs to somebody else: give it to the user of this process or set mode 0700", dir, mode)
	}
	return nil
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// sizes is a database of a size of which a part is in use.
type sizes struct {
	size, used int64
	defragged  int
	err        error
}

func (s *sizes) Size() int64      { return s.size }
func (s *sizes) SizeInUse() int64 { return s.used }
func (s *sizes) Defrag() error {
	s.defragged++
	return s.err
}

// quiet has no alarms and counts compactions.
type quiet struct{ compacted *int }

func (q quiet) Compact(context.Context, *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	*q.compacted++
	return &pb.CompactionResponse{}, nil
}

func (quiet) Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return &pb.AlarmResponse{}, nil
}

func TestMaintain(t *testing.T) {
	cases := map[string]struct {
		db            sizes
		want          int
		wantCompacted int
		wantErr       bool
	}{
		"a small database is left alone":                   {db: sizes{size: 60 << 20}},
		"a database that is mostly in use is left alone":   {db: sizes{size: 800 << 20, used: 600 << 20}},
		"a database that is mostly free is due":            {db: sizes{size: 800 << 20, used: 300 << 20}, want: 1},
		"an empty database that reaches the limit is due":  {db: sizes{size: 64 << 20}, want: 1},
		"near the quota, the history is dropped":           {db: sizes{size: 900 << 20, used: 880 << 20}, wantCompacted: 1},
		"near the quota, free pages are left for later":    {db: sizes{size: 900 << 20, used: 840 << 20}, wantCompacted: 1},
		"next to the quota, a twentieth is worth the work": {db: sizes{size: 960 << 20, used: 900 << 20}, want: 1, wantCompacted: 1},
		"next to the quota, less is not worth the work":    {db: sizes{size: 960 << 20, used: 920 << 20}, wantCompacted: 1},
		"an error is reported":                             {db: sizes{size: 800 << 20, err: errors.New("disk full")}, want: 1, wantErr: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compacted := 0
			m := &maintainer{
				db: &c.db, member: quiet{&compacted}, revision: func() int64 { return 2 }, quotaBytes: 1 << 30, full: &atomic.Bool{},
			}
			err := m.maintain(t.Context())
			if c.db.defragged != c.want || compacted != c.wantCompacted || (err != nil) != c.wantErr {
				t.Errorf("defragmented %d times, not %d, compacted %d times, not %d: %v", c.db.defragged, c.want, compacted, c.wantCompacted, err)
			}
		})
	}
}

// TestQuotaRecovers fills a member until it refuses writes, deletes, and wants it to accept writes again by itself: no one else compacts,
// and the next regular look is an hour away.
func TestQuotaRecovers(t *testing.T) {
	s := run(t, Config{DataDir: shortDir(t), QuotaBytes: 16 << 20, DefragmentInterval: time.Hour, Ephemeral: true})
	defer s.Close()
	client := connect(t, s)
	defer client.Close()
	value := strings.Repeat("x", 1<<20)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = client.Put(t.Context(), fmt.Sprint("key", i), value)
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("the quota is not enforced: %v", err)
	}
	s.Refused()
	if _, err := client.Delete(t.Context(), "key", clientv3.WithPrefix()); err != nil {
		t.Fatalf("deleting is refused: %v", err)
	}
	poll.UntilNil(t, "writes are accepted again", func() error {
		_, err := client.Put(t.Context(), "after", "value")
		if err == nil && s.Full() {
			err = fmt.Errorf("full: %+v", s.Usage())
		}
		return err
	})
}

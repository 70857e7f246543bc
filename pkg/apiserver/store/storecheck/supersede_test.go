// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestBehind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ floor, revision, want int64 }{
		"no store before":                         {0, 5, 0},
		"an empty store after a small one":        {300, 2, 10_298},
		"rolled back a little":                    {1_000_000, 999_990, 10_010},
		"rolled back, and written since":          {1_000_000, 1_009_999, 1},
		"restored with a much higher revision":    {1_000_000, 1_000_000_000, 0},
		"an empty store after a large one":        {1_000_000, 2, 0},
		"as far behind as is still worth it":      {100_000, 10_000, 100_000},
		"one more than that, which takes a while": {100_001, 10_000, 0},
	} {
		if got := behind(tc.floor, tc.revision); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestAcceptedStoreSupersedesItsPredecessor: whoever watched the store that is lost must not resume in the new one.
func TestAcceptedStoreSupersedesItsPredecessor(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.started(t, store)
	seen := main.record(t).Floor + 100
	store.exchange("")
	g := main.guard(t, store)
	refusal := main.refused(t, g, witness.ReasonEmptyStore)
	main.accept(t, refusal, true)
	begin := time.Now()
	served(t, g)
	t.Logf("served after %s", time.Since(begin).Round(time.Millisecond))
	if record := main.record(t); record.Floor <= seen+aboveFloor-100 || record.Restored.Revision != record.Floor {
		t.Fatalf("the record is %+v", record)
	}
	if response, err := g.store.client.Get(t.Context(), g.store.key+"-revision"); err != nil || len(response.Kvs) != 0 {
		t.Errorf("the key that was written is left: %v, %v", response, err)
	}
	events := g.store.client.Watch(t.Context(), testPrefix, clientv3.WithPrefix(), clientv3.WithRev(seen))
	if response := <-events; !errors.Is(response.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from revision %d: %v", seen, response.Err())
	}
}

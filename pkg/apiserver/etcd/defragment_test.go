// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"testing"
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

func TestDefragment(t *testing.T) {
	cases := map[string]struct {
		db   sizes
		want int
	}{
		"a small database is left alone":                       {db: sizes{size: 60 << 20}},
		"a database that is mostly in use is left alone":       {db: sizes{size: 1 << 30, used: 600 << 20}},
		"a database that is mostly free is defragmented":       {db: sizes{size: 1 << 30, used: 400 << 20}, want: 1},
		"an error is reported and does not end the process":    {db: sizes{size: 1 << 30, err: errors.New("disk full")}, want: 1},
		"an empty database that just reaches the limit is due": {db: sizes{size: 64 << 20}, want: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			defragment(t.Context(), &c.db)
			if c.db.defragged != c.want {
				t.Errorf("defragmented %d times, not %d", c.db.defragged, c.want)
			}
		})
	}
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
)

// TestStream: what a reader gets is the snapshot, or the writer reports that it is not.
func TestStream(t *testing.T) {
	revision, good := goodSnapshot(t)
	damaged := bytes.Clone(good)
	damaged[len(damaged)/2] ^= 1
	for name, tc := range map[string]struct {
		member member
		want   string
	}{
		"as the store":     {member{revision: revision, uuid: "u", blobs: [][]byte{good}}, ""},
		"in pieces":        {member{revision: revision, uuid: "u", blobs: [][]byte{good[:1000], good[1000 : len(good)-7], good[len(good)-7:]}}, ""},
		"a part of it":     {member{revision: revision, uuid: "u", blobs: [][]byte{good[:len(good)-1000]}}, "the snapshot does not end with a hash"},
		"nothing":          {member{revision: revision, uuid: "u", blobs: [][]byte{{}}}, "the snapshot does not end with a hash"},
		"a damaged one":    {member{revision: revision, uuid: "u", blobs: [][]byte{damaged}}, "the snapshot is damaged: its content has the hash "},
		"without the hash": {member{revision: revision, uuid: "u", blobs: [][]byte{good[:len(good)-32]}}, "the snapshot does not end with a hash"},
	} {
		var got bytes.Buffer
		saved, err := backup.Stream(t.Context(), tc.member.serve(t), &got)
		if tc.want == "" && (err != nil || !bytes.Equal(got.Bytes(), good) || saved.Bytes != int64(len(good)) || saved.Revision != revision) {
			t.Errorf("%s: %d bytes, %+v, %v", name, got.Len(), saved, err)
		}
		if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestStreamFromAnotherMember: a member that does not have all of the store is passed over, and nothing of it is written.
func TestStreamFromAnotherMember(t *testing.T) {
	revision, good := goodSnapshot(t)
	for name, own := range map[string]*member{
		"lags behind":                          {revision: revision - 1, uuid: "u"},
		"does not have the key of the witness": {revision: revision, uuid: "v"},
	} {
		wrong := &member{revision: revision, uuid: "u", own: own, blobs: [][]byte{[]byte("of the wrong one")}}
		source, next := wrong.serve(t), (&member{revision: revision, uuid: "u", blobs: [][]byte{good}}).serve(t)
		var got bytes.Buffer
		if _, err := backup.Stream(t.Context(), source, &got); err == nil || !strings.Contains(err.Error(), name) || got.Len() > 0 {
			t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
		}
		source.Client.Endpoints = append(source.Client.Endpoints, next.Client.Endpoints...)
		if _, err := backup.Stream(t.Context(), source, &got); err != nil || !bytes.Equal(got.Bytes(), good) {
			t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
		}
	}
}

// shortWriter fails after some bytes.
type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// TestStreamToReaderThatLeaves: the next member is not asked, because a part is written already.
func TestStreamToReaderThatLeaves(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.putWitness(t, "u", "v1")
	s.fill(t, 4, 1<<20)
	source := s.source
	source.Client.Endpoints = append(source.Client.Endpoints, source.Client.Endpoints...)
	_, err := backup.Stream(t.Context(), source, &shortWriter{left: 1 << 20})
	if !errors.Is(err, syscall.EPIPE) || strings.Count(err.Error(), "writing a snapshot") != 1 {
		t.Errorf("%v", err)
	}
}

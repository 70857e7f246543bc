// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// member answers what it is given.
type member struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
	revision int64
	uuid     string
	size     int64
	blobs    [][]byte
	// own is what the member answers without asking the others.
	own *member
}

func (m *member) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if r.Serializable && m.own != nil {
		m = m.own
	}
	response := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: m.revision}}
	if m.uuid != "" {
		key := witness.Key{UUID: m.uuid}
		response.Kvs = []*mvccpb.KeyValue{{Value: key.Encode(), ModRevision: m.revision}}
	}
	return response, nil
}

func (m *member) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{DbSize: m.size}, nil
}

func (m *member) Snapshot(_ *pb.SnapshotRequest, stream grpc.ServerStreamingServer[pb.SnapshotResponse]) error {
	for i, blob := range m.blobs {
		if err := stream.Send(&pb.SnapshotResponse{Blob: blob, RemainingBytes: uint64(len(m.blobs) - i - 1)}); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) serve(t *testing.T) backup.Source {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, m)
	pb.RegisterMaintenanceServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return backup.Source{Client: clientv3.Config{Endpoints: []string{"http://" + listener.Addr().String()}}, Prefix: prefix}
}

// goodSnapshot returns the snapshot of a store with the witness "u", and its revision.
func goodSnapshot(t *testing.T) (revision int64, snapshot []byte) {
	t.Helper()
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	revision = s.putWitness(t, "u", "v1")
	snapshot, err := os.ReadFile(s.saved(t))
	if err != nil {
		t.Fatal(err)
	}
	return revision, snapshot
}

func TestSnapshotsThatAreNotTheStoreAreRefused(t *testing.T) {
	revision, good := goodSnapshot(t)
	for name, tc := range map[string]struct {
		member member
		want   string
	}{
		"as the store":       {member{revision: revision, uuid: "u", blobs: [][]byte{good}}, ""},
		"in pieces":          {member{revision: revision, uuid: "u", blobs: [][]byte{good[:1000], good[1000:]}}, ""},
		"without a witness":  {member{revision: revision, blobs: [][]byte{good}}, ""},
		"a part of it":       {member{revision: revision, uuid: "u", blobs: [][]byte{good[:len(good)-1000]}}, "does not end with a hash"},
		"nothing":            {member{revision: revision, uuid: "u", blobs: [][]byte{{}}}, "is empty"},
		"older":              {member{revision: revision + 1, uuid: "u", blobs: [][]byte{good}}, "lags behind: it has revision 2, but the store had 3 already"},
		"of another store":   {member{revision: revision, uuid: "v", blobs: [][]byte{good}}, "does not have the key of the witness"},
		"larger than a disk": {member{revision: revision, uuid: "u", size: 1 << 60, blobs: [][]byte{good}}, "no space left on device"},
	} {
		d := directory(t, 1)
		_, err := d.Save(t.Context(), tc.member.serve(t))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if kept, err := d.List(); err != nil || (len(kept) == 1) != (tc.want == "") {
			t.Errorf("%s: %v is kept, %v", name, kept, err)
		}
		if _, err := os.Stat(filepath.Join(d.Path, "incomplete")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the incomplete file is left: %v", name, err)
		}
	}
}

// TestLaggingMember: the next member is asked.
func TestLaggingMember(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.putWitness(t, "u", "v1")
	old, err := os.ReadFile(s.saved(t))
	if err != nil {
		t.Fatal(err)
	}
	revision := s.put(t, prefix+"/a", "x")
	present, err := os.ReadFile(s.saved(t))
	if err != nil {
		t.Fatal(err)
	}
	source := (&member{revision: revision, uuid: "u", blobs: [][]byte{old}}).serve(t)
	next := (&member{revision: revision, uuid: "u", blobs: [][]byte{present}}).serve(t)
	source.Client.Endpoints = append(source.Client.Endpoints, next.Client.Endpoints...)
	saved, err := backup.Save(t.Context(), source, filepath.Join(t.TempDir(), "backup.db"))
	if err != nil || saved.Revision != revision {
		t.Errorf("%+v, %v", saved, err)
	}
}

// limited returns a directory on a disk of one MiB.
func limited(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullDisk needs root to mount a small disk. TestSnapshotsThatAreNotTheStoreAreRefused covers the sizes that members claim, without
// root.
func TestFullDisk(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.putWitness(t, "u", "v1")
	d := directory(t, 2)
	if os.Geteuid() == 0 {
		d.Path = limited(t)
		if _, err := d.Save(t.Context(), s.source); err != nil {
			t.Fatal(err)
		}
		// This member claims to be small, so that the disk fills while its snapshot is written.
		blobs := make([][]byte, 64)
		for i := range blobs {
			blobs[i] = make([]byte, 1<<20)
		}
		before := names(t, d.Path)
		if _, err := d.Save(t.Context(), (&member{revision: 1, blobs: blobs}).serve(t)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("error while writing: %v", err)
		}
		s.fill(t, 4, 1<<20)
		if _, err := d.Save(t.Context(), s.source); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("error before writing: %v", err)
		}
		if diff := cmp.Diff(before, names(t, d.Path)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	s.put(t, prefix+"/a", "the store is not affected")
}

// TestSpaceForTheMember: a backup beside the data leaves space for a defragmentation and the log.
func TestSpaceForTheMember(t *testing.T) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(t.TempDir(), &stat); err != nil {
		t.Fatal(err)
	}
	free := int64(stat.Bavail) * stat.Bsize
	d := directory(t, 1)
	source := (&member{revision: 1, size: free / 4 * 3}).serve(t)
	if _, err := d.Save(t.Context(), source); err == nil || errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error on a disk of its own: %v", err)
	}
	source.DataDir = filepath.Dir(d.Path)
	if _, err := d.Save(t.Context(), source); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error on the disk of the member: %v", err)
	}
}

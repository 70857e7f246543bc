// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcheck

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

// standIn is a member that says how it is, and answers no other requests, as one that is a learner or has no leader.
type standIn struct {
	pb.UnimplementedMaintenanceServer
	state *pb.StatusResponse
}

// Status implements pb.MaintenanceServer.
func (s *standIn) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return s.state, nil
}

// Alarm implements pb.MaintenanceServer.
func (s *standIn) Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return nil, status.Error(codes.Unavailable, "rpc not supported")
}

func TestMembersThatAnswerNoRequestsSayWhy(t *testing.T) {
	header := &pb.ResponseHeader{MemberId: 2}
	for name, c := range map[string]struct {
		state *pb.StatusResponse
		want  selfcheck.Member
	}{
		"a learner": {&pb.StatusResponse{Header: header, Version: "3.7.3", Leader: 1, IsLearner: true, DbSize: 9, DbSizeInUse: 5},
			selfcheck.Member{Version: "3.7.3", Learner: true, SizeBytes: 9, InUseBytes: 5}},
		"no leader": {&pb.StatusResponse{Header: header, Version: "3.7.3", DbSize: 9, DbSizeInUse: 5},
			selfcheck.Member{Version: "3.7.3", NoLeader: true, SizeBytes: 9, InUseBytes: 5}},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		pb.RegisterMaintenanceServer(server, &standIn{state: c.state})
		go func() { _ = server.Serve(listener) }()
		c.want.Endpoint = "http://" + listener.Addr().String()
		got := askMembers(t.Context(), storagebackend.TransportConfig{ServerList: []string{c.want.Endpoint}}, time.Minute)
		server.Stop()
		if diff := cmp.Diff([]selfcheck.Member{c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

// memberTimeout is how long a member has to answer.
const memberTimeout = 2 * time.Second

// askMembers asks each member of the store for its state. The connections are new, so that they show what a new connection would meet.
func askMembers(ctx context.Context, transport storagebackend.TransportConfig, timeout time.Duration) []selfcheck.Member {
	all := make([]selfcheck.Member, len(transport.ServerList))
	var group sync.WaitGroup
	for i, endpoint := range transport.ServerList {
		group.Go(func() {
			all[i] = selfcheck.Member{Endpoint: endpoint}
			if err := ask(ctx, transport, timeout, &all[i]); err != nil {
				all[i] = selfcheck.Member{Endpoint: endpoint, Error: err.Error()}
			}
		})
	}
	group.Wait()
	return all
}

// ask fills in what a member says about itself. The endpoint is all that is known before.
func ask(ctx context.Context, transport storagebackend.TransportConfig, timeout time.Duration, m *selfcheck.Member) error {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	settings := clientv3.Config{Context: ctx, Endpoints: []string{m.Endpoint}, Logger: zap.NewNop()}
	var err error
	if settings.TLS, err = members.TLS(transport); err != nil {
		return err
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer client.Close()
	status, err := client.Status(ctx, m.Endpoint)
	if err != nil {
		return silence(ctx, timeout, err)
	}
	m.Version, m.Leader = status.Version, status.Leader == status.Header.MemberId
	m.Learner, m.NoLeader = status.IsLearner, status.Leader == 0
	m.SizeBytes, m.InUseBytes, m.QuotaBytes = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
	if m.Learner || m.NoLeader { // other requests would be refused, or wait for a leader
		return nil
	}
	// The connection exists by now, so that this is the time of a request.
	begin := time.Now()
	alarms, err := client.AlarmList(ctx)
	if err != nil {
		return silence(ctx, timeout, err)
	}
	m.LatencyMicroseconds = time.Since(begin).Microseconds()
	for _, alarm := range alarms.Alarms {
		if alarm.MemberID == status.Header.MemberId && alarm.Alarm != pb.AlarmType_NONE {
			m.Alarms = append(m.Alarms, alarm.Alarm.String())
		}
	}
	return nil
}

// silence says that a member did not answer in time, for which the client has several words.
func silence(ctx context.Context, timeout time.Duration, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", timeout, err)
	}
	return err
}

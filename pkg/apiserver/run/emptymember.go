// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// noteInterval is how often a member with an empty data directory notes in the record that it looks for the others.
const noteInterval = 30 * time.Second

// emptyMember is a member with an empty data directory that does not reach enough of the others. Most members may have lost their data:
// then there is no store any more. The members find that out from the record, in which each of them notes itself.
type emptyMember struct {
	name string
	kube kubernetes.Interface
	told provider.Recorder

	noted    time.Time
	reported bool
}

// explain returns what the member waits for.
func (m *emptyMember) explain(ctx context.Context, err error) error {
	if !errors.Is(err, etcd.ErrAlone) {
		return err
	}
	lost, noteErr := m.note(ctx)
	if noteErr != nil {
		klog.FromContext(ctx).Error(noteErr, "Cannot note in the record of the store that the data directory of this member is empty")
	}
	if len(lost) == 0 {
		return err
	}
	// The error of the request differs from one attempt to the next.
	err = fmt.Errorf("the data directories of %s are empty, so that most of the members have lost their data: put the right volumes back, or "+
		"restore a backup on the first member as docs/operations/backup.md describes", strings.Join(lost, " and "))
	if !m.reported {
		m.reported = true
		m.told.Record(storecheck.Event(true, "StoreLost", "No server serves the store: "+err.Error()+"."))
	}
	return err
}

// note notes this member in the record, and returns the members that have lost their data, if there is no majority of others.
func (m *emptyMember) note(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, mainapi.Timeout)
	defer cancel()
	cm, record, err := getRecord(ctx, m.kube)
	if err != nil || !record.Adopted() || record.Cluster == nil {
		return nil, err
	}
	now := time.Now()
	if now.Sub(m.noted) >= noteInterval {
		record.Cluster.Note(m.name, now)
		if err = record.Write(cm); err == nil {
			_, err = m.kube.CoreV1().ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{}) // after a conflict, the next attempt does it
		}
		if err == nil {
			m.noted = now
		}
	}
	return record.Cluster.Lost(now), err
}

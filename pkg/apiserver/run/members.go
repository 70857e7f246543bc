// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// startMember starts the member of this server, and makes the server use all members. The main API has the certificates of the members, and
// the record that says to which cluster they belong.
func (r *run) startMember(ctx context.Context, store *etcd.Server, main *mainapi.Clients, told provider.Recorder) error {
	if err := r.keepPeerCert(ctx, main); err != nil {
		return err
	}
	empty := &emptyMember{name: r.Storage.PodName, kube: main.Kube, told: told}
	err := store.StartMember(ctx, etcd.Installation{
		Read: func(ctx context.Context) (*witness.Record, error) { return readRecord(ctx, main.Kube) },
		Wait: func(err error) { r.wait.Startup.Wait(ctx, "the members of the embedded etcd", empty.explain(ctx, err)) },
		Tell: func(step etcd.Step, note string) {
			told.Record(storecheck.Event(step == etcd.StepRemoved, string(step), note))
		},
	})
	if err != nil && ctx.Err() != nil {
		return mainapi.ErrLeft
	}
	if err != nil {
		return flagerror.Wrap("data-dir", err, "give each server the data of its own member")
	}
	r.wait.Startup.Proceed(ctx)
	transport := &r.Recommended.Etcd.StorageConfig.Transport
	all, err := members.New(context.WithoutCancel(ctx), *transport, options.EtcdPrefix)
	if err != nil {
		return flagerror.Wrap("embedded-etcd-members", err, "repair the certificates in "+etcd.CertificatesDir(r.Storage.DataDir))
	}
	all.Distrust()
	r.members = all
	transport.EgressLookup = all.Prefer(r.ownMember())
	go store.WatchLeader(ctx, func() { all.Reconnect(r.ownMember()) })
	go all.Run(context.WithoutCancel(ctx)) // requests are still answered for a while after the process was asked to end
	return nil
}

// ownMember is the address of the member of this server for clients.
func (r *run) ownMember() string {
	cluster := r.Cluster()
	return cluster.Client(cluster.Ordinal)
}

// guardTransport is how the check of the store connects: to all members, so that a member of this server that is slow does not delay it.
func (r *run) guardTransport() storagebackend.TransportConfig {
	transport := r.Recommended.Etcd.StorageConfig.Transport
	if r.members != nil {
		transport.EgressLookup = r.members.Lookup
	}
	return transport
}

// applyMemberChecks makes the server ready while its own member answers, so that an update restarts one member at a time. The process is
// alive without a majority: a restart would not bring the other members back.
func (r *run) applyMemberChecks(config *server.Config) {
	if r.members == nil {
		return
	}
	etcd.LiveWithoutStore(config)
	own := r.ownMember()
	config.AddReadyzChecks(healthz.NamedCheck("embedded-etcd", func(*http.Request) error {
		if !r.members.Answers(own) {
			return errors.New("the embedded member of this server does not answer, but another member does")
		}
		return nil
	}))
}

// lostStore returns what says that the store is lost, for a server with a member of a cluster, which may be cut off from the others.
func (r *run) lostStore() func() bool {
	if r.members == nil {
		return nil
	}
	return r.members.Lost
}

// keepPeerCert keeps the certificates of the members in the data directory.
func (r *run) keepPeerCert(ctx context.Context, main *mainapi.Clients) error {
	peers := r.ManagedCert.Peers()
	config, err := certConfig(main, peers)
	if err != nil {
		return err
	}
	config.Names, config.Dir = r.Storage.Members, etcd.CertificatesDir(r.Storage.DataDir)
	manager := servingcert.New(config)
	if err := r.awaitCert(ctx, "the certificate of the members of the embedded etcd", manager); err != nil {
		return flagerror.Wrap(options.ManagedFlag, err, "repair the Secret "+peers.Secret)
	}
	go manager.Run(ctx)
	return nil
}

// readRecord returns the record of the witness; nil if there is none.
func readRecord(ctx context.Context, main kubernetes.Interface) (*witness.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, mainapi.Timeout)
	defer cancel()
	_, record, err := getRecord(ctx, main)
	return record, err
}

// getRecord returns the record, and the ConfigMap that has it; both are nil if there is none.
func getRecord(ctx context.Context, main kubernetes.Interface) (*corev1.ConfigMap, *witness.Record, error) {
	cm, err := main.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s of the main cluster: %w", witness.Namespace, witness.Name, err)
	}
	record, err := witness.Read(cm)
	return cm, record, err
}

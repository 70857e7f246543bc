// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage serves Runs from the archive database: get, list and delete. Runs are recorded by the server itself. They are never
// created or changed by clients, and cannot be watched.
package storage

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Resource is the name of the resource.
const Resource = "runs"

// Storage serves the runs of a store.
type Storage struct {
	rest.TableConvertor
	store  archive.Store
	causes causes
}

var (
	_ rest.Getter               = &Storage{}
	_ rest.Lister               = &Storage{}
	_ rest.GracefulDeleter      = &Storage{}
	_ rest.TableConvertor       = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
)

// New returns the storage of runs. Without a store, it answers every request with how to switch on the archive.
func New(host provider.Host) *Storage {
	now := host.Now
	if now == nil {
		now = time.Now
	}
	return &Storage{TableConvertor: NewTable(now), store: host.Runs, causes: causes{now: now}}
}

// New implements rest.Storage.
func (*Storage) New() runtime.Object { return &api.Run{} }

// NewList implements rest.Lister.
func (*Storage) NewList() runtime.Object { return &api.RunList{} }

// Destroy implements rest.Storage. The store belongs to the server, which closes it.
func (*Storage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*Storage) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (*Storage) GetSingularName() string { return "run" }

// Get returns a run with its details.
func (s *Storage) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if options != nil {
		if err := checkVersion(options.ResourceVersion); err != nil {
			return nil, err
		}
	}
	return s.get(ctx, name)
}

func (s *Storage) get(ctx context.Context, name string) (*api.Run, error) {
	if s.store == nil {
		return nil, off()
	}
	namespace := request.NamespaceValue(ctx)
	if !storable(namespace, maxName) || !storable(name, maxName) {
		return nil, apierrors.NewNotFound(api.Resource(Resource), name)
	}
	run, err := s.store.Get(ctx, namespace, name)
	if err != nil {
		return nil, s.refusal(ctx, err, name)
	}
	return run, nil
}

// List returns one page of runs without their details, those that ended last first. A page has at most archive.MaxLimit runs, also if the
// client asks for all: kubectl and the pager of client-go follow the continue token whether or not they have set a limit. The list has no
// resource version, because there is nothing that could be watched from there, and no count of the remaining runs, which would cost more
// than the page.
func (s *Storage) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	if s.store == nil {
		return nil, off()
	}
	query, empty, err := newQuery(request.NamespaceValue(ctx), options)
	if err != nil {
		return nil, err
	}
	list := &api.RunList{Items: []api.Run{}}
	if empty {
		return list, nil
	}
	page, err := s.store.List(ctx, query)
	if err != nil {
		return nil, s.refusal(ctx, err, "")
	}
	list.Items, list.Continue = append(list.Items, page.Runs...), page.Continue
	return list, nil
}

// Delete deletes a run, unless a precondition or admission refuses that. It returns a status, as for other kinds.
func (s *Storage) Delete(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (
	runtime.Object, bool, error) {
	run, err := s.get(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if err := checkPreconditions(run, options); err != nil {
		return nil, false, err
	}
	if deleteValidation != nil {
		if err := deleteValidation(ctx, run.DeepCopyObject()); err != nil {
			return nil, false, err
		}
	}
	if options == nil || !dryrun.IsDryRun(options.DryRun) {
		// Another client may have deleted it, and the server may have recorded another one under the name.
		if _, err := s.store.Delete(ctx, run.Namespace, run.Name, run.UID); err != nil {
			return nil, false, s.refusal(ctx, err, name)
		}
	}
	return deleted(run.Name, run.UID), true, nil
}

// checkPreconditions returns an error if a run is another one than a client wants to delete. A run has no resource version.
func checkPreconditions(run *api.Run, options *metav1.DeleteOptions) error {
	if options == nil || options.Preconditions == nil {
		return nil
	}
	if uid := options.Preconditions.UID; uid != nil && *uid != run.UID {
		return apierrors.NewConflict(api.Resource(Resource), run.Name,
			fmt.Errorf("the UID in the precondition must be %s, not %s", run.UID, *uid))
	}
	if version := options.Preconditions.ResourceVersion; version != nil && *version != run.ResourceVersion {
		return apierrors.NewConflict(api.Resource(Resource), run.Name,
			fmt.Errorf("the resource version in the precondition must be empty, because runs have none, not %q", *version))
	}
	return nil
}

// deleted is what a client gets when a run is deleted.
func deleted(name string, uid types.UID) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: name, Group: api.GroupName, Kind: Resource, UID: uid,
	}}
}

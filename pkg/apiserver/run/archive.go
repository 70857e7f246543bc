// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/database"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	archivesql "github.com/jobset-apiserver/jobset-apiserver/pkg/archive/sql"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// newArchive returns what keeps the runs that have ended, and serves them; nil if that is off.
func (r *run) newArchive(config *apiserver.Config, guard *storecheck.Guard) (*archive.Archive, error) {
	if !r.Archive.On() {
		return nil, nil
	}
	where := archivesql.Config{URL: r.Archive.Database, PasswordFile: r.Archive.PasswordFile}
	if file := r.Archive.File(r.Storage.DataDir); file != "" {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, flagerror.Wrap("data-dir", err, "give an absolute path")
		}
		where.URL = absolute
	}
	info, ok := runtime.SerializerInfoForMediaType(config.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("no serializer for %s", runtime.ContentTypeJSON)
	}
	kept, err := archive.New(archive.Config{
		Database: where, Limits: database.Limits{Age: r.Archive.Retention, Bytes: r.Archive.RetentionBytes.Value()},
		Redaction: r.Archive.Redaction(), Transport: r.guardTransport(), Prefix: r.Recommended.Etcd.StorageConfig.Prefix,
		Describe: config.APIGroups.Recorded(), New: newObjects(config.Scheme),
		Encoder: config.Codecs.EncoderForVersion(info.Serializer, config.APIGroups.StorageVersions()),
		Serving: func() bool { return guard == nil || guard.Serving() },
	})
	if err != nil {
		return nil, err
	}
	config.Runs = kept.Store()
	return kept, nil
}

// newObjects returns what makes empty objects and lists of a resource, of the internal types.
func newObjects(scheme *runtime.Scheme) func(schema.GroupResource) (object, list runtime.Object) {
	return func(resource schema.GroupResource) (object, list runtime.Object) {
		internal := schema.GroupVersion{Group: resource.Group, Version: runtime.APIVersionInternal}
		for kind := range scheme.KnownTypes(internal) {
			plural, _ := meta.UnsafeGuessKindToResource(internal.WithKind(kind))
			if plural.Resource != resource.Resource || strings.HasSuffix(kind, "List") {
				continue
			}
			object, err := scheme.New(internal.WithKind(kind))
			if err != nil {
				return nil, nil
			}
			if list, err = scheme.New(internal.WithKind(kind + "List")); err == nil {
				return object, list
			}
		}
		return nil, nil
	}
}

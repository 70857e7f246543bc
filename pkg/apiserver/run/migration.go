// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/migration"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
)

// applyMigration serves the API of migrations. A server that does not check its store does not: it does not know whether the
// store belongs to the cluster whose objects it would write.
func (r *run) applyMigration(config *apiserver.Config, guard *storecheck.Guard) error {
	if guard == nil {
		return nil
	}
	kinds, err := importer.KindsFor(config.Gates)
	if err != nil {
		return err
	}
	store := &importer.Store{KV: guard.Client(), Prefix: r.Recommended.Etcd.StorageConfig.Prefix}
	for _, resource := range config.APIGroups.Stored() {
		options, err := config.Generic.RESTOptionsGetter.GetRESTOptions(resource, nil)
		if err != nil {
			return fmt.Errorf("looking for the objects of %s: %w", resource, err)
		}
		if options.StorageConfig.Transformer == nil {
			continue
		}
		if store.Transformers == nil {
			store.Transformers = encryptionconfig.StaticTransformers{}
		}
		store.Transformers[resource] = options.StorageConfig.Transformer
	}
	config.Filters.Migration = migration.NewHandler(kinds, store).Filter
	return nil
}

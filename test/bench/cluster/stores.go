// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// group is a part of the keys of all objects of our kinds, in whatever store.
const group = "/jobset.x-k8s.io/"

// addStores adds the sizes of the two stores: what their databases hold, and what of it are JobSets.
func (c *Cluster) addStores(ctx context.Context, to *report.Phase) error {
	processes, err := c.Processes()
	if err != nil {
		return err
	}
	for _, store := range []struct{ name, server string }{{"etcd", "kube-apiserver"}, {"jobset-etcd", "jobset-apiserver"}} {
		if c.Upstream && store.server != "kube-apiserver" {
			continue
		}
		settings, err := flags(processes[store.server])
		if err != nil {
			return err
		}
		if settings["etcd-servers"] == "" {
			if err := c.addEmbedded(ctx, to); err != nil {
				return err
			}
			continue
		}
		prefix := settings["etcd-prefix"]
		if prefix == "" {
			prefix = "/registry/jobset-apiserver"
		}
		if err := addStore(ctx, store.name, settings["etcd-servers"], prefix+group, to); err != nil {
			return fmt.Errorf("looking into %s: %w", store.name, err)
		}
	}
	return nil
}

func addStore(ctx context.Context, name, servers, prefix string, to *report.Phase) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(servers, ","), Context: ctx})
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return err
	}
	to.Add("db/"+name, report.UnitMiB, float64(status.DbSizeInUse)/(1<<20))
	bytes, number, err := sizeBelow(ctx, client, prefix, func(string) bool { return true })
	if err != nil {
		return err
	}
	to.Add("stored/"+name+"/jobset bytes", report.UnitBytes, float64(bytes))
	to.Add("stored/"+name+"/jobset objects", report.UnitCount, float64(number))
	return nil
}

// StoredIn returns the bytes of all objects of namespaces in the etcd of kube-apiserver, keys and values, without earlier versions.
func (c *Cluster) StoredIn(ctx context.Context, namespaces ...string) (int, error) {
	processes, err := c.Processes()
	if err != nil {
		return 0, err
	}
	settings, err := flags(processes["kube-apiserver"])
	if err != nil {
		return 0, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(settings["etcd-servers"], ","), Context: ctx})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	bytes, _, err := sizeBelow(ctx, client, cmp.Or(settings["etcd-prefix"], "/registry")+"/", inNamespaces(namespaces))
	if err != nil {
		return 0, fmt.Errorf("looking into etcd: %w", err)
	}
	return bytes, nil
}

// inNamespaces reports whether a key is of an object of one of the namespaces: the name of the namespace comes before that of the object.
func inNamespaces(namespaces []string) func(key string) bool {
	return func(key string) bool {
		parts := strings.Split(key, "/")
		return len(parts) > 1 && slices.Contains(namespaces, parts[len(parts)-2])
	}
}

// sizeBelow adds up the keys below a prefix that count, and their values, some at a time.
func sizeBelow(ctx context.Context, client *clientv3.Client, prefix string, counts func(key string) bool) (bytes, number int, err error) {
	const page = 500
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		answer, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return 0, 0, err
		}
		for _, kv := range answer.Kvs {
			if counts(string(kv.Key)) {
				bytes, number = bytes+len(kv.Key)+len(kv.Value), number+1
			}
		}
		if !answer.More {
			return bytes, number, nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

// addEmbedded adds the metrics that our server has of its embedded etcd, which no other process can reach.
func (c *Cluster) addEmbedded(ctx context.Context, to *report.Phase) error {
	metrics, err := c.Metrics(ctx, "jobset-apiserver")
	if err != nil {
		return err
	}
	for _, sample := range metrics["apiserver_storage_size_bytes"] {
		to.Add("db/jobset-etcd", report.UnitMiB, float64(sample.Value)/(1<<20))
		return nil
	}
	return nil
}

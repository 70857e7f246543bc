// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// importing is `store import`.
type importing struct {
	*clients
	streams                           genericiooptions.IOStreams
	client                            *storeClient
	file, encryption, gates           string
	compare, skip, dropUnknown, prune bool
	dryRun                            dryRun
}

func newImport(streams genericiooptions.IOStreams, connect connector) *cobra.Command {
	i := &importing{streams: streams, client: newStoreClient()}
	cmd := &cobra.Command{
		Use:   "import [RESOURCE.GROUP...] | --file=FILE",
		Short: "Take over objects of custom resource definitions with their UIDs",
		Long: `Write objects that a CustomResourceDefinition serves into the store, with their UIDs, generations, managed fields, status and
finalizers, so that their children stay as they are when jobset-apiserver serves the group. Stop the other controller first.

All objects are checked before the first one is written. The command may be interrupted and repeated: it writes what the store
does not have, updates what has changed at the source since it was imported, and never overwrites what jobset-apiserver has
written, or an object with another UID. The server may run, may refuse its store, but must not serve the group yet, unless the
source is a file. For an embedded etcd, run the command where the server runs and as the same user; for an external one, anywhere.`,
		Example: "  # What would be imported from the main cluster?\n" +
			"  jobset-apiserver store import --dry-run=client --data-dir=/var/lib/jobset-apiserver/data\n\n" +
			"  # Import in the pod of a server with the embedded etcd\n" +
			"  kubectl get leaderworkersets --all-namespaces -o json --show-managed-fields |\n" +
			"    kubectl -n jobset-system exec -i jobset-apiserver-0 -- \\\n" +
			"      jobset-apiserver store import --file=- --data-dir=/var/lib/jobset-apiserver/data\n\n" +
			"  # Are the objects of the store those of the source?\n" +
			"  jobset-apiserver store import --compare --data-dir=/var/lib/jobset-apiserver/data",
	}
	i.addFlags(cmd)
	flags := addClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := i.validate(args); err != nil {
			return err
		}
		if i.clients, err = connect(flags); err != nil {
			return err
		}
		return i.run(cmd.Context(), args)
	}
	return cmd
}

func (i *importing) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&i.file, "file", "", "File with the objects, as \"kubectl get -o json --show-managed-fields\" prints them, instead of the "+
		"main cluster. - is the standard input.")
	fs.BoolVar(&i.compare, "compare", false, "Only compare the store with the source. The exit code is 1 if they differ.")
	fs.BoolVar(&i.skip, "skip-invalid", false, "Leave out objects that this version does not accept. The garbage collector deletes their "+
		"children when jobset-apiserver serves the group.")
	fs.BoolVar(&i.dropUnknown, "drop-unknown-fields", false, "Import objects without the fields that this version does not know.")
	fs.BoolVar(&i.prune, "prune", false, "Delete objects from the store that were imported, that nobody has written since, and that the "+
		"source does not have any more.")
	fs.StringVar(&i.encryption, "encryption-provider-config", "", "File with the encryption configuration of the server, if it has one.")
	fs.StringVar(&i.gates, "feature-gates", "", "Feature gates of the server, if it has other ones than the default.")
	i.dryRun.addFlag(cmd)
	fs.Lookup("dry-run").Usage = `Must be "none" or "client". If client strategy, only print what would be imported.`
	i.client.AddFlags(fs)
}

func (i *importing) validate(args []string) error {
	switch {
	case i.dryRun.value == "server":
		return errors.New("--dry-run: must be none or client, not server: the command writes to the store, not to the server")
	case i.file != "" && len(args) > 0:
		return fmt.Errorf("argument %q must not be given with --file: all objects of the file are imported", args[0])
	case i.compare && (i.prune || i.dryRun.value != "none"):
		return errors.New("--compare: must not be set together with --prune or --dry-run, because it writes nothing")
	}
	return i.dryRun.validate()
}

func (i *importing) run(ctx context.Context, args []string) (err error) {
	kinds, err := importer.NewKinds(i.gates)
	if err != nil {
		return err
	}
	wanted, err := wantedResources(kinds, args)
	if err != nil {
		return err
	}
	store, done, err := i.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := i.sameCluster(ctx, store); err != nil {
		return err
	}
	taken := &importer.Import{
		Kinds: kinds, Store: store, SkipInvalid: i.skip, DropUnknown: i.dropUnknown, Prune: i.prune, DryRun: i.dryRun.client(), Report: i.report,
	}
	resources, err := i.read(ctx, taken, wanted, len(args) > 0)
	if err != nil {
		return err
	}
	if i.compare {
		return i.compareAll(ctx, taken, resources)
	}
	return i.write(ctx, taken, resources)
}

// wantedResources returns the resources that the arguments name; all of them if there are none.
func wantedResources(kinds *importer.Kinds, args []string) ([]schema.GroupResource, error) {
	all := kinds.Resources()
	if len(args) == 0 {
		return all, nil
	}
	var wanted []schema.GroupResource
	for _, arg := range args {
		resource := schema.ParseGroupResource(arg)
		if !slices.Contains(all, resource) {
			return nil, fmt.Errorf("argument %q must be one of %s", arg, joined(all))
		}
		if !slices.Contains(wanted, resource) {
			wanted = append(wanted, resource)
		}
	}
	return wanted, nil
}

// open connects to the store.
func (i *importing) open(ctx context.Context) (*importer.Store, func() error, error) {
	source, err := i.client.Source(ctx)
	if err != nil {
		return nil, nil, err
	}
	reader, err := newReader(ctx, source.Prefix, i.encryption)
	if err != nil {
		return nil, nil, err
	}
	client, err := clientv3.New(source.Client)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return &importer.Store{KV: client, Prefix: source.Prefix, Transformers: reader.transformers}, client.Close, nil
}

// sameCluster refuses a store that belongs to another cluster or that a newer version has written.
func (i *importing) sameCluster(ctx context.Context, store *importer.Store) error {
	found, err := store.Witness(ctx)
	if err != nil || found == nil {
		return err
	}
	if found.Format > witness.Format {
		return newerFormat(found)
	}
	system, err := i.kube.CoreV1().Namespaces().Get(ctx, witness.Namespace, metav1.GetOptions{})
	if err != nil {
		return explain(err)
	}
	if system.UID != found.ClusterUID {
		return fmt.Errorf("the store must belong to the cluster %s, but it belongs to %s: use the kubeconfig of that cluster (--kubeconfig, "+
			"--context), or another store",
			system.UID, found.ClusterUID)
	}
	return nil
}

// read reads the source. It returns the resources that were read as a whole.
func (i *importing) read(ctx context.Context, taken *importer.Import, wanted []schema.GroupResource,
	named bool) ([]schema.GroupResource, error) {
	source, resources, err := i.source(ctx, taken.Kinds, wanted, named)
	if err != nil {
		return nil, err
	}
	defer source.close()
	err = taken.Read(ctx, source.read)
	switch refused := taken.Refused(); {
	case err != nil && i.file != "":
		return nil, fmt.Errorf("--file: %w", err)
	case err != nil:
		return nil, explain(err)
	case refused > 0 && !i.skip && !i.compare:
		return nil, fmt.Errorf("%s not accepted, and nothing was imported: correct the causes above, or leave them out with --skip-invalid, "+
			"which loses their children", was(refused))
	}
	if i.file == "" {
		return resources, nil
	}
	if resources = taken.Resources(); len(resources) == 0 {
		return nil, errors.New("--file: must have at least one object of a kind that this version stores")
	}
	return resources, nil
}

// opened is a source, and how to close it.
type opened struct {
	read  importer.Source
	close func()
}

func (i *importing) source(ctx context.Context, kinds *importer.Kinds, wanted []schema.GroupResource,
	named bool) (*opened, []schema.GroupResource, error) {
	switch i.file {
	case "":
		return i.cluster(ctx, kinds, wanted, named)
	case "-":
		return &opened{importer.FromFile(i.streams.In), func() {}}, nil, nil
	}
	file, err := os.Open(i.file)
	if err != nil {
		return nil, nil, fmt.Errorf("--file: %w", err)
	}
	return &opened{importer.FromFile(file), func() { _ = file.Close() }}, nil, nil
}

// cluster finds the resources that custom resource definitions serve. Those that were not named may be missing.
func (i *importing) cluster(ctx context.Context, kinds *importer.Kinds, wanted []schema.GroupResource,
	named bool) (*opened, []schema.GroupResource, error) {
	cluster := &importer.Cluster{Client: i.dynamic, Kinds: kinds}
	var served []schema.GroupVersionResource
	var resources []schema.GroupResource
	for _, resource := range wanted {
		version, err := cluster.Served(ctx, resource)
		var unserved *importer.Unserved
		switch {
		case errors.As(err, &unserved) && !named:
			fmt.Fprintf(i.streams.ErrOut, "%s: left out: %v\n", resource, err)
			continue
		case err != nil:
			return nil, nil, explain(err)
		}
		served, resources = append(served, version), append(resources, resource)
	}
	if len(served) == 0 {
		return nil, nil, errors.New("the main cluster serves none of the resources by a CustomResourceDefinition: there is nothing to import")
	}
	return &opened{cluster.Source(served), func() {}}, resources, nil
}

// report prints what is not imported, or differs.
func (i *importing) report(name string, cause error, fails bool) {
	format := "%s left out: %v\n"
	switch {
	case i.compare:
		format = "%s: %v\n"
	case fails:
		format = "%s not imported: %v\n"
	}
	fmt.Fprintf(i.streams.ErrOut, format, name, cause)
}

func (i *importing) compareAll(ctx context.Context, taken *importer.Import, resources []schema.GroupResource) error {
	differ, err := taken.Compare(ctx, resources)
	if err != nil {
		return err
	}
	refused := taken.Refused()
	fmt.Fprintf(i.streams.Out, "%s: %s\n", joined(resources), plural(taken.Objects()+refused, "object"))
	if differ += refused; differ > 0 {
		return fmt.Errorf("%s different: see above", was(differ))
	}
	return nil
}

// write imports what was read.
func (i *importing) write(ctx context.Context, taken *importer.Import, resources []schema.GroupResource) error {
	counts, failed, err := taken.Write(ctx, resources)
	for _, resource := range resources {
		c := counts[resource]
		fmt.Fprintf(i.streams.Out, "%s: %d created, %d updated, %d unchanged, %d pruned%s\n", resource, c[importer.Created], c[importer.Updated],
			c[importer.Unchanged], c[importer.Pruned], i.dryRun.suffix())
	}
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s not imported: correct the causes above and run the command again", was(failed))
	}
	return nil
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// read is a call of `kubectl get` that prints fields. Tests poll with such calls, and each start of kubectl costs a tenth of
// a second of CPU, most of it before the request, so they run in this process: with the library of which kubectl is made,
// and so with the same arguments, requests and output.
type read struct {
	namespace, selector, fields, output string
	all, ignoreNotFound                 bool
	resources                           []string
}

// parseRead returns the call; nil if the arguments hold something else, for which the program is needed.
func parseRead(args []string) *read {
	r := &read{}
	flags := pflag.NewFlagSet("get", pflag.ContinueOnError)
	flags.StringVarP(&r.namespace, "namespace", "n", "", "")
	flags.StringVarP(&r.selector, "selector", "l", "", "")
	flags.StringVar(&r.fields, "field-selector", "", "")
	flags.StringVarP(&r.output, "output", "o", "", "")
	flags.BoolVarP(&r.all, "all-namespaces", "A", false, "")
	flags.BoolVar(&r.ignoreNotFound, "ignore-not-found", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() < 2 || flags.Arg(0) != "get" {
		return nil
	}
	if r.output != "json" && !strings.HasPrefix(r.output, "jsonpath=") {
		return nil
	}
	r.resources = flags.Args()[1:]
	return r
}

// start is about how long the program takes before its request. Reads wait as long: a test that polls at the pace of a user
// leaves the machine to the programs under test.
const start = 200 * time.Millisecond

// do reads and prints as kubectl does. After an error that is no answer of the API it tries again, as a program that has
// just started: what was discovered before may be outdated.
func (r *read) do(kubeconfig string) Result {
	time.Sleep(start)
	out, err := r.print(kubeconfig)
	status := apierrors.APIStatus(nil)
	if err != nil && !errors.As(err, &status) {
		forget(kubeconfig)
		out, err = r.print(kubeconfig)
	}
	switch {
	case err == nil:
		return Result{Stdout: out}
	case errors.As(err, &status):
		return Result{Stderr: fmt.Sprintf("Error from server (%s): %s\n", status.Status().Reason, status.Status().Message), Code: 1}
	}
	return Result{Stderr: fmt.Sprintf("error: %v\n", err), Code: 1}
}

func (r *read) print(kubeconfig string) (string, error) {
	getter, err := getterOf(kubeconfig)
	if err != nil {
		return "", err
	}
	printer, err := r.printer()
	if err != nil {
		return "", err
	}
	found := resource.NewBuilder(getter).Unstructured().NamespaceParam(r.namespace).DefaultNamespace().AllNamespaces(r.all).
		LabelSelectorParam(r.selector).FieldSelectorParam(r.fields).ResourceTypeOrNameArgs(true, r.resources...).
		ContinueOnError().Latest().Flatten().Do()
	if r.ignoreNotFound {
		found.IgnoreErrors(apierrors.IsNotFound)
	}
	single := false
	infos, err := found.IntoSingleItemImplied(&single).Infos()
	if err != nil {
		return "", err
	}
	if single && len(infos) == 0 {
		return "", nil // was not found, and that is ignored
	}
	var out bytes.Buffer
	err = printer.PrintObj(objectOf(infos, single), &out)
	return out.String(), err
}

func (r *read) printer() (printers.ResourcePrinter, error) {
	if r.output == "json" {
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	}
	return (&genericclioptions.JSONPathPrintFlags{}).ToPrinter(r.output)
}

// objectOf returns the object, or a list of objects.
func objectOf(infos []*resource.Info, single bool) runtime.Object {
	if single && len(infos) == 1 {
		return infos[0].Object
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, info := range infos {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			list.Items = append(list.Items, *object)
		}
	}
	return list
}

// getter is the connection to a cluster, with what was discovered of it.
type getter struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

var _ resource.RESTClientGetter = &getter{}

// ToRESTConfig implements resource.RESTClientGetter.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient implements resource.RESTClientGetter.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

// ToRESTMapper implements resource.RESTClientGetter.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// getters are the connections by the path and the content of a kubeconfig: another cluster may have the path of an earlier one.
var getters struct {
	sync.Mutex
	of map[string]map[string]*getter
}

func getterOf(kubeconfig string) (*getter, error) {
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	getters.Lock()
	defer getters.Unlock()
	if g := getters.of[kubeconfig][string(content)]; g != nil {
		return g, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Timeout = -1, callTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(client)
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	g := &getter{config, cached, restmapper.NewShortcutExpander(deferred, cached, nil)}
	if getters.of == nil {
		getters.of = map[string]map[string]*getter{}
	}
	getters.of[kubeconfig] = map[string]*getter{string(content): g}
	return g, nil
}

func forget(kubeconfig string) {
	getters.Lock()
	defer getters.Unlock()
	delete(getters.of, kubeconfig)
}

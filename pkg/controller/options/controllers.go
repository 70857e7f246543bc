// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/manager"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// allControllers stands for all controllers in the flag --controllers.
const allControllers = "*"

// known are all controllers of this program.
var known = []descriptor{
	{
		name: jobset.Name, objects: "JobSets", workers: 10,
		needs: []schema.GroupVersion{jobsetv1alpha2.SchemeGroupVersion}, build: newJobSetController,
	},
}

// descriptor describes a controller.
type descriptor struct {
	// name is its name in flags, and objects is what it works on.
	name, objects string
	// workers is the default number of objects that are worked on at a time.
	workers int
	// needs are the API groups and versions without which it does not start.
	needs []schema.GroupVersion
	build func(o *Options, clients clients, kind *informers.Kind, broadcaster events.EventBroadcaster) (manager.Controller, error)
}

// concurrentFlag is the name of the flag for the number of workers.
func (d descriptor) concurrentFlag() string { return "concurrent-" + d.name + "-syncs" }

func knownNames() (names []string) {
	for _, d := range known {
		names = append(names, d.name)
	}
	return names
}

func (o *Options) addControllersFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers,
		"Controllers to run. '*' stands for all, 'name' for the one of that name, and '-name' leaves it out. All are: "+strings.Join(knownNames(), ", ")+".")
	for _, d := range known {
		fs.IntVar(o.Workers[d.name], d.concurrentFlag(), d.workers, "Number of "+d.objects+" that are worked on at a time.")
	}
	fs.IntVar(o.Workers[jobset.Name], "workers", *o.Workers[jobset.Name], "")
	_ = fs.MarkDeprecated("workers", "use --concurrent-jobset-syncs") // fails for unknown flags only
}

func defaultWorkers() map[string]*int {
	workers := map[string]*int{}
	for _, d := range known {
		n := d.workers
		workers[d.name] = &n
	}
	return workers
}

// enabled returns whether the flag --controllers asks for a controller. The first entry that names it decides.
func (o *Options) enabled(name string) bool {
	for _, entry := range o.Controllers {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return slices.Contains(o.Controllers, allControllers)
}

func (o *Options) validateControllers() error {
	for _, entry := range o.Controllers {
		if name := strings.TrimPrefix(entry, "-"); entry != allControllers && !slices.Contains(knownNames(), name) {
			return o.flagError("controllers", "unknown controller %q; known are %s", name, strings.Join(knownNames(), ", "))
		}
	}
	if !slices.ContainsFunc(knownNames(), o.enabled) {
		return o.flagError("controllers", "must leave at least one of %s", strings.Join(knownNames(), ", "))
	}
	for _, d := range known {
		if n := *o.Workers[d.name]; n < 1 {
			return o.flagError(d.concurrentFlag(), "must be 1 or more, not %d", n)
		}
	}
	return nil
}

// newManager returns a manager of the controllers that are asked for.
func (o *Options) newManager(clients clients, broadcaster events.EventBroadcaster) *manager.Manager {
	var controllers []manager.Descriptor
	for _, d := range known {
		if o.enabled(d.name) {
			controllers = append(controllers, manager.Descriptor{Name: d.name, Needs: d.needs, New: func(kind *informers.Kind) (manager.Controller, error) {
				return d.build(o, clients, kind, broadcaster)
			}})
		}
	}
	return manager.New(informers.NewFactory(clients.main), controllers...)
}

func newJobSetController(o *Options, clients clients, kind *informers.Kind, broadcaster events.EventBroadcaster) (manager.Controller, error) {
	return jobset.New(jobset.Config{
		JobSets:   clients.jobSets,
		Kube:      clients.main,
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, jobset.Name),
		Clock:     clock.RealClock{},
		Gates:     features.JobSet(o.gate),
		Workers:   *o.Workers[jobset.Name],
	})
}

// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/manager"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// allControllers stands for all controllers in the flag --controllers.
const allControllers = "*"

// gangFlag is the flag for the scheduler of gangs, and gangProviders are its values.
const gangFlag = "gang-scheduling-provider"

var gangProviders = []string{string(gangplan.Volcano), string(gangplan.Coscheduling), string(gangplan.Kubernetes),
	string(gangplan.KubernetesAlpha)}

// placementFlag is the flag for what happens without enough topology domains, and placementsWhenFull are its values.
const placementFlag = "placement-when-full"

var placementsWhenFull = []string{string(placement.WhenFullAffinity), string(placement.WhenFullWait)}

// moveFlag is the flag for how long pods wait for nodes before their Job moves.
const moveFlag = "placement-move-after"

// avoidFlag is the flag for how long pods keep off nodes on which an attempt failed.
const avoidFlag = "avoid-failed-nodes"

// known are all controllers of this program.
var known = []descriptor{
	{
		name: jobset.Name, objects: "JobSets", workers: 10,
		own: []schema.GroupVersion{jobsetv1alpha2.SchemeGroupVersion}, build: newJobSetController,
	},
	{
		name: sequentialjob.Name, objects: "SequentialJobs", workers: 10,
		own: []schema.GroupVersion{batchv1alpha1.SchemeGroupVersion}, needs: []schema.GroupVersion{jobsetv1alpha2.SchemeGroupVersion},
		build: newSequentialJobController,
	},
	{
		name: podgroup.Name, objects: "pod groups", workers: 10,
		own: []schema.GroupVersion{batchv1alpha1.SchemeGroupVersion}, build: newPodGroupController,
	},
	{
		name: leaderworkerset.Name, objects: "LeaderWorkerSets", workers: 10,
		own: []schema.GroupVersion{leaderworkersetv1.SchemeGroupVersion}, build: newLeaderWorkerSetController,
	},
	{
		name: disaggregatedset.Name, objects: "DisaggregatedSets", workers: 10, gate: features.DisaggregatedSet,
		own: []schema.GroupVersion{disaggregatedsetv1.SchemeGroupVersion}, needs: []schema.GroupVersion{leaderworkersetv1.SchemeGroupVersion},
		build: newDisaggregatedSetController,
	},
	{
		name: endpoints.Name, objects: "JobSets whose EndpointSlices this program writes", workers: 10,
		own: []schema.GroupVersion{jobsetv1alpha2.SchemeGroupVersion}, build: newEndpointsController,
	},
}

// descriptor describes a controller.
type descriptor struct {
	// name is its name in flags, and objects is what it works on.
	name, objects string
	// workers is the default number of objects that are worked on at a time.
	workers int
	// gate is the feature gate without which it does not run; empty for none.
	gate featuregate.Feature
	// own are the API groups and versions of the objects that it runs, and needs others without which it does not start.
	own, needs []schema.GroupVersion
	build      func(o *Options, clients clients, kind *informers.Kind, broadcaster events.EventBroadcaster) (manager.Controller, error)
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
		"Controllers to run. '*' stands for all, 'name' for the one of that name, and '-name' leaves it out. All are: "+strings.Join(knownNames(),
			", ")+".")
	for _, d := range known {
		fs.IntVar(o.Workers[d.name], d.concurrentFlag(), d.workers, "Number of "+d.objects+" that are worked on at a time.")
	}
	fs.StringVar(&o.GangProvider, gangFlag, o.GangProvider,
		"Scheduler of gangs for which LeaderWorkerSets get one PodGroup for each group: "+strings.Join(gangProviders, ", ")+". Empty for none. "+
			"With "+string(gangplan.Volcano)+" and "+string(gangplan.Coscheduling)+
			", the groups of JobSets with spec.scheduling are PodGroups of it too.")
	fs.StringVar(&o.PlacementWhenFull, placementFlag, o.PlacementWhenFull,
		"What happens to JobSets with exclusive placement for whose Jobs there are not enough topology domains: affinity creates the Jobs with "+
			"affinities by which the scheduler finds domains, for example because nodes are added for them; wait creates no Job before there are "+
			"enough. Has an effect only with the feature gate ExclusivePlacement.")
	fs.DurationVar(&o.PlacementMoveAfter, moveFlag, o.PlacementMoveAfter,
		"How long pods of a Job with exclusive placement wait for nodes in its topology domain before the Job moves to another one with room, "+
			"from 30s to 1h. It should be longer than a node takes to start, and doubles with each move of the Job, up to 1h. "+
			"Has an effect only with the feature gate ExclusivePlacement.")
	fs.DurationVar(&o.AvoidFailedNodes, avoidFlag, o.AvoidFailedNodes,
		"For how long the pods of a JobSet keep off a node on which an attempt of it failed, from 0s, for not at all, to 720h. "+
			"The annotation "+jobsetv1alpha2.AvoidFailedNodesKey+" of a JobSet overrides it.")
	o.addServiceEndpointsFlags(fs)
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
	clients.endpoints = &endpoints.Handle{Off: !o.enabled(endpoints.Name)}
	var controllers []manager.Descriptor
	for _, d := range known {
		if o.enabled(d.name) && (d.gate == "" || o.gate.Enabled(d.gate)) {
			controllers = append(controllers, manager.Descriptor{Name: d.name, Own: d.own, Needs: o.needsOf(d),
				New: func(kind *informers.Kind) (manager.Controller, error) {
					return d.build(o, clients, kind, broadcaster)
				}})
		}
	}
	return manager.New(informers.NewRoutedFactory(clients.main, informers.RoutesOf(clients.dynamic)), controllers...)
}

// needsOf returns the API groups and versions of other servers without which a controller does not start.
func (o *Options) needsOf(d descriptor) []schema.GroupVersion {
	if d.name == leaderworkerset.Name && o.GangProvider != "" {
		return append(slices.Clone(d.needs), gangplan.Provider(o.GangProvider).Resource().GroupVersion())
	}
	return d.needs
}

func (o *Options) validatePlacement() error {
	if !slices.Contains(placementsWhenFull, o.PlacementWhenFull) {
		return o.flagError(placementFlag, "must be %s, not %q", strings.Join(placementsWhenFull, " or "), o.PlacementWhenFull)
	}
	if d := o.PlacementMoveAfter; d < placement.MinMoveAfter || d > placement.MaxMoveAfter {
		return o.flagError(moveFlag, "must be from 30s to 1h, such as 5m, not %s", d)
	}
	return nil
}

func (o *Options) validateAvoidTime() error {
	if d := o.AvoidFailedNodes; d < 0 || d > helper.MaxAvoidTime {
		return o.flagError(avoidFlag, "must be from 0s, for not at all, to 720h, such as 1h, not %s", d)
	}
	return nil
}

func (o *Options) validateGang() error {
	if o.GangProvider != "" && !slices.Contains(gangProviders, o.GangProvider) {
		return o.flagError(gangFlag, "must be one of %s, or empty for none, not %q", strings.Join(gangProviders, ", "), o.GangProvider)
	}
	return nil
}

func newJobSetController(o *Options, clients clients, kind *informers.Kind,
	broadcaster events.EventBroadcaster) (manager.Controller, error) {
	return jobset.New(jobset.Config{
		JobSets:   clients.jobSets,
		Kube:      clients.main,
		Dynamic:   clients.dynamic,
		Gang:      gangplan.Provider(o.GangProvider),
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, jobset.Name),
		Clock:     clock.RealClock{},
		Gates:     features.JobSet(o.gate),
		Workers:   *o.Workers[jobset.Name],

		PlacementWhenFull:  placement.WhenFull(o.PlacementWhenFull),
		PlacementMoveAfter: o.PlacementMoveAfter,
		AvoidFailedNodes:   o.AvoidFailedNodes,
		Endpoints:          clients.endpoints,
	})
}

func newSequentialJobController(o *Options, clients clients, kind *informers.Kind,
	broadcaster events.EventBroadcaster) (manager.Controller, error) {
	return sequentialjob.New(sequentialjob.Config{
		Client:    clients.jobSets,
		Kube:      clients.main,
		Dynamic:   clients.dynamic,
		HoldQuota: o.gate.Enabled(features.SequentialJobWorkload),
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, sequentialjob.Reporter),
		Clock:     clock.RealClock{},
		Workers:   *o.Workers[sequentialjob.Name],
	})
}

func newPodGroupController(o *Options, clients clients, kind *informers.Kind,
	broadcaster events.EventBroadcaster) (manager.Controller, error) {
	return podgroup.New(podgroup.Config{
		Groups:    clients.jobSets,
		Kube:      clients.main,
		Dynamic:   clients.dynamic,
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, podgroup.Name),
		Clock:     clock.RealClock{},
		Workers:   *o.Workers[podgroup.Name],
	})
}

func newLeaderWorkerSetController(o *Options, clients clients, kind *informers.Kind, broadcaster events.EventBroadcaster) (
	manager.Controller, error) {
	return leaderworkerset.New(leaderworkerset.Config{
		Sets:      clients.jobSets,
		Kube:      clients.main,
		Dynamic:   clients.dynamic,
		Gang:      gangplan.Provider(o.GangProvider),
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, leaderworkerset.Name),
		Clock:     clock.RealClock{},
		Workers:   *o.Workers[leaderworkerset.Name],
	})
}

func newDisaggregatedSetController(o *Options, clients clients, kind *informers.Kind, broadcaster events.EventBroadcaster) (
	manager.Controller, error) {
	return disaggregatedset.New(disaggregatedset.Config{
		Client:    clients.jobSets,
		Kube:      clients.main,
		Informers: kind,
		Recorder:  broadcaster.NewRecorder(scheme.Scheme, disaggregatedset.Name),
		Clock:     clock.RealClock{},
		Workers:   *o.Workers[disaggregatedset.Name],
	})
}

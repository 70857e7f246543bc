// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	namespace = "ml"
	name      = "llm"
)

var key = cache.NewObjectName(namespace, name)

type (
	disaggregatedSet = *disaggregatedsetv1.DisaggregatedSet
	roleScaler       = *disaggregatedsetv1.DisaggregatedSetRoleScaler
	leaderWorkerSet  = *leaderworkersetv1.LeaderWorkerSet
	service          = *corev1.Service
)

// mutant is how the controller decides and acts: as it really does, or with a defect that must not go unnoticed.
type mutant struct {
	decide func(plan.Observed) plan.Plan
	finish func(plan.Observed, plan.Plan, plan.Results) plan.Outcome
	// careless ones do not try again what failed, restless ones sync again each second, and insistent ones try again at once what failed.
	careless, restless, insistent bool
	// hurried ones ask too early again for children that were denied.
	hurried bool
	// sees changes what the controller sees of objects that it may adopt.
	sees func(metav1.Object)
	// trusting ones believe in the set that their cache shows.
	trusting bool
	// hasty ones do not wait for what a former set of the name still controls.
	hasty bool
	// adopting ones take what has a label of the set for its child.
	adopting bool
	// credulous ones believe what a LeaderWorkerSet that cannot be read seems to be.
	credulous bool
	// replacing ones replace what another process has created; nil for none.
	replacing func(plan.Observed, *plan.Plan)
	// torn ones do not store the status of scalers when the time of a pass is over.
	torn bool
}

// faultless is the real controller.
var faultless = mutant{decide: plan.Decide, finish: plan.Finish}

// env is everything in one history.
type env struct {
	*simulation.World
	mutant
	faults faults

	// main is the API server of the cluster, and aggregated the one that serves the sets.
	main, aggregated *simulation.Server
	sets             *simulation.Resource[disaggregatedSet]
	scalers          *simulation.Resource[roleScaler]
	children         *simulation.Resource[leaderWorkerSet]
	services         *simulation.Resource[service]
	// others are what controls the objects of others.
	others *simulation.Resource[*corev1.ConfigMap]

	hardships
	// template is what the set is made of when a user creates it.
	template disaggregatedSet
	// meddled means that a user has scaled a LeaderWorkerSet by hand, so that the guarantees of a rollout do not hold.
	meddled bool
	// created is when a user created the set.
	created time.Time
	process *process
	// made are the objects that controllers have created.
	made map[types.UID]bool
	// confirmed are the sets that a controller has read from the server while they existed.
	confirmed map[types.UID]bool
	rules     *rules
}

// newEnv returns an environment in which a user has just created a set, and a controller starts.
func newEnv(seed uint64, m mutant, trace *[]string) *env {
	const stream = 0x646973616767
	e := &env{World: simulation.NewWorld(simulation.NewDice(seed, stream), trace), mutant: m, made: map[types.UID]bool{}, confirmed: map[types.UID]bool{}}
	e.faults = randomFaults(e.Dice)
	e.RandomTrouble()
	e.main, e.aggregated = &simulation.Server{Refusals: map[string]error{}}, &simulation.Server{Refusals: map[string]error{}}
	e.main.Versions.Last, e.aggregated.Versions.Last = 1, 1000 // the two servers count apart
	skew := []time.Duration{0, 0, -40 * time.Second, 90 * time.Second}
	e.main.Ahead, e.aggregated.Ahead = simulation.OneOf(e.Dice, skew...), simulation.OneOf(e.Dice, skew...)
	e.sets = simulation.NewResource[disaggregatedSet](e.World, e.aggregated, "set")
	e.scalers = simulation.NewResource[roleScaler](e.World, e.aggregated, "scaler")
	e.children = simulation.NewResource[leaderWorkerSet](e.World, e.aggregated, "leaderworkerset")
	e.services = simulation.NewResource[service](e.World, e.main, "service")
	e.others = simulation.NewResource[*corev1.ConfigMap](e.World, e.main, "configmap")
	e.rules = newRules(e)
	e.template = randomSet(e.Dice)
	e.createSet()
	e.startProcess()
	return e
}

// set returns the stored set; nil if there is none.
func (e *env) set() disaggregatedSet {
	ds, found := e.sets.Store.Get(name)
	if !found {
		return nil
	}
	return ds
}

// faults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type faults struct {
	sync, caches, groups, users, autoscalers, meddling, others, losses, refusals, restarts, time int
	// failing is the percentage of changes of groups that are failures, and ending that of passes whose time ends before all is done.
	failing, ending int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		sync: simulation.OneOf(d, 6, 12, 20), caches: simulation.OneOf(d, 6, 12, 30), groups: simulation.OneOf(d, 8, 16, 30), users: simulation.OneOf(d, 0, 1, 2, 4),
		autoscalers: simulation.OneOf(d, 0, 1, 3), meddling: simulation.OneOf(d, 0, 0, 0, 1, 2), others: simulation.OneOf(d, 0, 0, 0, 1), refusals: simulation.OneOf(d, 0, 0, 1, 2),
		restarts: simulation.OneOf(d, 0, 0, 1), time: simulation.OneOf(d, 1, 3, 6), failing: simulation.OneOf(d, 0, 0, 10, 25), ending: simulation.OneOf(d, 0, 0, 20),
		losses: simulation.OneOf(d, 0, 0, 0, 1),
	}
}

// happenings returns what may happen, the doings of the controller last.
func (e *env) happenings() []simulation.Happening {
	f := e.faults
	return []simulation.Happening{
		{Weight: f.groups, Do: e.someGroups},
		{Weight: f.caches, Do: func() { e.ShowSome(e.process.caches()) }},
		{Weight: f.users, Do: e.userActs},
		{Weight: f.autoscalers, Do: e.autoscale},
		{Weight: f.meddling, Do: e.meddle},
		{Weight: f.others, Do: e.othersAct},
		{Weight: f.losses, Do: e.disownSome},
		{Weight: f.refusals, Do: e.refuseSomething},
		{Weight: f.time, Do: e.PassTime},
		{Weight: 3, Do: func() { e.DeliverLate() }},
		{Weight: 3, Do: func() { e.CollectGarbage() }},
		{Weight: f.restarts, Do: func() { e.process.sender.Dead = true }},
		{Weight: f.sync, Do: e.sync},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 2

// step lets something happen.
func (e *env) step() {
	e.Happen(e.happenings())
	e.LimitLag(e.process.caches())
}

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	all := e.happenings()
	e.Happen(all[:len(all)-controllers])
}

// Refusals of servers, by what they are about.
var (
	things      = schema.GroupResource{Group: "any", Resource: "things"}
	errQuota    = apierrors.NewForbidden(things, "x", errors.New("exceeded quota: team"))
	errDenied   = apierrors.NewForbidden(things, "x", errors.New(`admission webhook "w" denied the request`))
	errNoRights = apierrors.NewForbidden(things, "x", errors.New(`the user "c" cannot create resource "things"`))
)

// refuseSomething lets a server begin or cease to refuse what the controller asks for.
func (e *env) refuseSomething() {
	if len(e.aggregated.Refusals)+len(e.main.Refusals) > 0 && e.Dice.Percent(60) {
		e.Note("nothing is refused any more")
		clear(e.aggregated.Refusals)
		clear(e.main.Refusals)
		return
	}
	server, what := e.aggregated, simulation.OneOf(e.Dice, "create leaderworkerset", "create leaderworkerset", "patch leaderworkerset", "delete leaderworkerset", "create scaler", "delete scaler", "update scaler", "update set", "patch scaler", "get set", "get leaderworkerset")
	if e.Dice.Percent(30) {
		server, what = e.main, simulation.OneOf(e.Dice, "create service", "delete service", "get service", "patch service")
	}
	server.Refusals[what] = simulation.OneOf[error](e.Dice, errQuota, errDenied, errNoRights, simulation.ErrServer)
	e.Seen["refusals by verb"]++
	e.Note("from now on refused: %s: %v", what, server.Refusals[what])
}

// ownedBySet returns whether a DisaggregatedSet controls an object.
func ownedBySet(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.Kind == "DisaggregatedSet"
}

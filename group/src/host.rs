//! Groups in a job: the [protocol](crate::protocol) over the messages of the runtime.

use crate::life::{Life, Part, Wanted};
use crate::name::{GroupId, Name};
use crate::protocol::{Notice, Site};
use crate::table::Table;
use futures_util::StreamExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine_runtime::error::TaskError;
use ultramarine_runtime::executor::{Context, Portable};
use ultramarine_topology::Pe;

/// A part of a group in a job.
pub trait Hosted:
    Part<Invitation: Invite<Self>, Error: Portable + From<TaskError>> + Send + 'static
{
    /// Does what a part wants to have done: spawns tasks, sends messages (which the other PE has
    /// its part [receive](Site::receive)), wakes what waits. The part is not locked then.
    fn carry_out(cx: &Context, member: &Member<Self>, id: GroupId, effects: Self::Effects);

    /// The part is over. It is not locked.
    fn end(self) {}
}

/// What makes a PE take part.
pub trait Invite<P: Hosted>: Clone + Send + 'static {
    /// Sends it to a PE, or to all, which [accept](Site::accept) it.
    ///
    /// # Errors
    ///
    /// It cannot be sent.
    fn send(&self, cx: &Context, to: Option<Pe>, id: GroupId) -> Result<(), P::Error>;

    /// Makes this PE's part.
    ///
    /// # Errors
    ///
    /// The group fails with this error.
    fn make(&self, cx: &Context, id: GroupId) -> Result<P, P::Error>;
}

/// Where a PE keeps its part of a group.
pub struct Member<P: Part>(Arc<Mutex<Life<P>>>);

impl<P: Part> Clone for Member<P> {
    fn clone(&self) -> Self {
        Member(self.0.clone())
    }
}

impl<P: Part> Member<P> {
    fn life(&self) -> MutexGuard<'_, Life<P>> {
        // No user code runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with the part under its lock, if this PE has made it and it is not over. The part
    /// wants nothing after that.
    pub fn with<T>(&self, f: impl FnOnce(GroupId, &mut P) -> T) -> Option<T> {
        self.life().with(f)
    }

    /// The same for a program that waits for something of this opening.
    ///
    /// # Errors
    ///
    /// The group has failed since.
    pub fn with_opening<T>(
        &self,
        id: GroupId,
        f: impl FnOnce(&mut P) -> T,
    ) -> Result<Option<T>, P::Error> {
        let mut life = self.life();
        let failure = life.failure_of(id).cloned();
        failure.map_or_else(|| Ok(life.with(|_, part| f(part))), Err)
    }

    /// Has the part do something under its lock. Returns what it wants to have done then.
    pub fn act(&self, act: impl FnOnce(&mut P)) -> Wanted<P> {
        self.act_in(|_, part| act(part))
    }

    /// The same for something that depends on the opening.
    pub fn act_in(&self, act: impl FnOnce(GroupId, &mut P)) -> Wanted<P> {
        self.life().act(act)
    }
}

impl<P: Hosted> Member<P> {
    /// Has the part do something under its lock, and does what it wants to have done then.
    pub fn act_at_once(&self, cx: &Context, act: impl FnOnce(&mut P)) {
        if let Some((id, effects)) = self.act(act) {
            P::carry_out(cx, self, id, effects);
        }
    }
}

/// What a PE keeps of its groups with parts of one type.
struct Kept<P: Hosted> {
    table: Mutex<Table<Member<P>>>,
    is_watching: AtomicBool,
}

impl<P: Hosted> Default for Kept<P> {
    fn default() -> Self {
        Kept { table: Mutex::default(), is_watching: AtomicBool::new(false) }
    }
}

/// The job has ended. Each part is ended by itself: if two panic in one drop, the process aborts.
impl<P: Hosted> Drop for Kept<P> {
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, _, member) in table.all() {
            let remains = member.life().close();
            remains.part.into_iter().for_each(Hosted::end);
        }
    }
}

/// The groups with parts of one type, as a PE knows them.
pub struct Groups<'a, P: Hosted> {
    cx: &'a Context,
    kept: Arc<Kept<P>>,
}

impl<'a, P: Hosted> Groups<'a, P> {
    /// Those of this PE.
    pub fn on(cx: &'a Context) -> Self {
        let kept: Arc<Kept<P>> = cx.pe_local();
        if !kept.is_watching.swap(true, Ordering::Relaxed) {
            // Told and not spawned: if a part panics at a death, the job ends. (And if it is ending
            // now, there is nothing to hear.)
            let _ = cx.tell(cx.pe(), watch_deaths::<P>, ());
        }
        Groups { cx, kept }
    }

    /// This PE's part of a group, if it has heard of it.
    pub fn get(&self, name: Name) -> Option<Member<P>> {
        self.with_table(|table| table.get(name))
    }

    /// The same, unless that opening was of a group which is closed.
    pub fn find(&self, id: GroupId) -> Option<Member<P>> {
        self.with_table(|table| table.find(id))
    }

    /// The number of groups that this PE knows and that are not closed.
    pub fn known(&self) -> usize {
        self.with_table(|table| table.all().len())
    }
}

impl<P: Hosted> Site<P> for Groups<'_, P> {
    type Cell = Member<P>;

    fn me(&self) -> Pe {
        self.cx.pe()
    }

    fn root(&self) -> Pe {
        self.cx.root()
    }

    fn dead(&self) -> Vec<Pe> {
        if !self.has_any_died() {
            return Vec::new();
        }
        (0..self.cx.pes()).map(Pe::new).filter(|pe| self.cx.is_dead(*pe)).collect()
    }

    fn is_dead(&self, pe: Pe) -> bool {
        self.cx.is_dead(pe)
    }

    fn has_any_died(&self) -> bool {
        self.cx.dead() > 0
    }

    fn cell(&self) -> Member<P> {
        Member(Arc::default())
    }

    fn with_table<T>(&self, act: impl FnOnce(&mut Table<Member<P>>) -> T) -> T {
        // No user code runs under the lock.
        act(&mut self.kept.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_life<T>(&self, cell: &Member<P>, act: impl FnOnce(&mut Life<P>) -> T) -> T {
        act(&mut cell.life())
    }

    fn carry_out(&self, cell: &Member<P>, id: GroupId, effects: P::Effects) {
        P::carry_out(self.cx, cell, id, effects);
    }

    fn make(&self, id: GroupId, invitation: &P::Invitation) -> Result<P, P::Error> {
        invitation.make(self.cx, id)
    }

    fn end(&self, part: P) {
        part.end();
    }

    fn invite(
        &self,
        to: Option<Pe>,
        id: GroupId,
        invitation: &P::Invitation,
    ) -> Result<(), P::Error> {
        invitation.send(self.cx, to, id)
    }

    fn tell(&self, to: Option<Pe>, id: GroupId, notice: Notice<P::Error>) {
        let hear = |cx: &Context, (id, from, notice): (GroupId, Pe, Notice<P::Error>)| {
            Groups::<P>::on(cx).hear(id, from, notice);
        };
        let told = (id, self.me(), notice);
        // If it cannot be told, the job ends, and all is forgotten.
        let _ = match to {
            Some(pe) => self.cx.tell_fn(pe, hear, told),
            None => self.cx.tell_all_fn(hear, told),
        };
    }
}

/// Tells the groups of deaths, for as long as there is a job.
async fn watch_deaths<P: Hosted>(cx: Context, (): ()) {
    let mut deaths = cx.deaths();
    while let Some(dead) = deaths.next().await {
        Groups::<P>::on(&cx).died(dead);
    }
}

/// A group that a program on this PE has opened. Dropping it closes the group everywhere, unless
/// another program on this PE uses it, too.
pub struct Opened<P: Hosted> {
    cx: Context,
    id: GroupId,
    member: Member<P>,
}

impl<P: Hosted> Opened<P> {
    /// Joins the group of this digest, or makes it. If it is not owned, the next root can join it;
    /// only the root opens such groups.
    pub fn new(cx: &Context, digest: u128, is_owned: bool) -> Self {
        // What this PE does in a group goes on when the PE that waits for this task dies.
        let cx = cx.independent();
        let (id, member) = Groups::on(&cx).open(digest, is_owned, cx.attempt());
        Opened { cx, id, member }
    }

    /// This PE has made its part: all others are invited.
    ///
    /// # Errors
    ///
    /// The invitation cannot be sent.
    pub fn start(&self, invitation: P::Invitation, part: P) -> Result<(), P::Error> {
        Groups::on(&self.cx).start(&self.member, self.id, invitation, part)
    }

    /// The context of what this PE does in the group.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// The opening.
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// This PE's part.
    pub fn member(&self) -> &Member<P> {
        &self.member
    }
}

impl<P: Hosted> Drop for Opened<P> {
    fn drop(&mut self) {
        Groups::<P>::on(&self.cx).leave(self.id.name);
    }
}

//! The page on a terminal.

use super::ask;
use super::rows::{Each, Seen};
use crate::error::Result;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Gauge, Paragraph, Row, Table, TableState, Wrap};
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;
use ultramarine_status::JobStatus;
use ultramarine_status::client::AskError;
use ultramarine_status::contact::Contact;

/// How often the page is drawn while no key is pressed.
const KEYS_EVERY: Duration = Duration::from_millis(100);

/// How many rows a page of the list is.
const PAGE_ROWS: usize = 10;

/// The summary has this number of rows at most, however narrow the terminal is.
const SUMMARY_ROWS_MAX: usize = 8;

/// What is to be shown.
struct Screen {
    seen: Seen,
    each: Each,
    list: TableState,
    /// Why the last answer is an old one.
    trouble: Option<String>,
}

/// Shows the job until the user ends that or the job ends. Returns what is to be said of it then.
pub(super) fn show(contact: &Contact, seen: Seen, every: Duration) -> Result<String> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, is_over.clone())?;
    }
    let answers = answers(contact.clone(), every)?;
    let list = TableState::default().with_selected(0);
    let mut screen = Screen { seen, each: Each::Host, list, trouble: None };
    let mut terminal = ratatui::try_init()?;
    let ended = keys().and_then(|keys| screen.stay(&mut terminal, &answers, &keys, &is_over));
    // It may be gone.
    let _ = ratatui::try_restore();
    let mut last = screen.seen.summary().to_vec();
    last.extend(ended?);
    Ok(last.join("\n"))
}

/// Asks the job again and again, on a thread of its own: an answer may take seconds.
fn answers(contact: Contact, every: Duration) -> Result<Receiver<Result<JobStatus, AskError>>> {
    let (answered, answers) = mpsc::channel();
    let asks = move || {
        loop {
            thread::sleep(every);
            if answered.send(ask(&contact)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("asks".to_owned()).spawn(asks)?;
    Ok(answers)
}

/// The keys that are pressed. A thread of its own waits for them: where a terminal is gone, that
/// never ends.
fn keys() -> std::io::Result<Receiver<KeyEvent>> {
    let (pressed, keys) = mpsc::channel();
    let waits = move || {
        while let Ok(event) = event::read() {
            if let Event::Key(key) = event
                && pressed.send(key).is_err()
            {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(waits)?;
    Ok(keys)
}

impl Screen {
    /// Is shown until the user ends that, or the job ends: then with why.
    fn stay(
        &mut self,
        terminal: &mut DefaultTerminal,
        answers: &Receiver<Result<JobStatus, AskError>>,
        keys: &Receiver<KeyEvent>,
        is_over: &AtomicBool,
    ) -> std::io::Result<Option<String>> {
        while !is_over.load(Ordering::Relaxed) {
            if let Err(ended) = self.hear(answers) {
                return Ok(Some(ended));
            }
            terminal.draw(|frame| self.draw(frame))?;
            match keys.recv_timeout(KEYS_EVERY) {
                Ok(key) if self.is_ended_by(key) => break,
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(None)
    }

    /// Takes in what the job has said.
    ///
    /// # Errors
    ///
    /// It has ended, in words for the user.
    fn hear(&mut self, answers: &Receiver<Result<JobStatus, AskError>>) -> Result<(), String> {
        loop {
            match answers.try_recv() {
                Ok(Ok(job)) => {
                    self.seen.add(job);
                    self.trouble = None;
                }
                Ok(Err(error @ (AskError::Gone { .. } | AskError::Stranger { .. }))) => {
                    return Err(error.to_string());
                }
                Ok(Err(error)) => self.trouble = Some(error.to_string()),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err("no answer comes".to_owned()),
            }
        }
    }

    /// Does what a key says. Returns whether that is to end.
    fn is_ended_by(&mut self, KeyEvent { code, modifiers, .. }: KeyEvent) -> bool {
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('p') => {
                self.each = if self.each == Each::Host { Each::Pe } else { Each::Host };
                self.list.select(Some(0));
            }
            KeyCode::Down | KeyCode::Char('j') => self.list.select_next(),
            KeyCode::Up | KeyCode::Char('k') => self.list.select_previous(),
            KeyCode::PageDown => self.list.scroll_down_by(PAGE_ROWS as u16),
            KeyCode::PageUp => self.list.scroll_up_by(PAGE_ROWS as u16),
            KeyCode::Home => self.list.select_first(),
            KeyCode::End => self.list.select_last(),
            _ => {}
        }
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let width = usize::from(frame.area().width);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let summary = self.seen.summary();
        let rows = summary.iter().map(|line| line.chars().count().div_ceil(width.max(1)));
        let summary_rows = rows.sum::<usize>().min(SUMMARY_ROWS_MAX) as u16;
        let summary = Paragraph::new(Text::from_iter(summary)).wrap(Wrap { trim: true });
        let [top, gauge, list, foot] = Layout::vertical([
            Constraint::Length(summary_rows),
            Constraint::Length(1),
            Constraint::Min(2),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(summary, top);
        let busy = Gauge::default().ratio(self.seen.busy().clamp(0.0, 1.0)).use_unicode(true);
        frame.render_widget(busy, gauge);
        let table = self.seen.table(self.each, width);
        let row = |cells: &Vec<String>| {
            let cell = |(at, cell): (usize, &String)| {
                let line = Line::from(cell.clone());
                Cell::new(if at == 0 { line } else { line.alignment(Alignment::Right) })
            };
            Row::new(cells.iter().enumerate().map(cell))
        };
        let widths = table.widths.iter().map(|width| Constraint::Length(*width as u16));
        let rows = Table::new(table.rows.iter().map(row), widths)
            .header(row(&table.titles).style(bold))
            .column_spacing(0)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(rows, list, &mut self.list);
        let keys = "q ends   p PEs or hosts   ↑↓ scroll";
        let foot_text = self.trouble.as_deref().unwrap_or(keys);
        frame.render_widget(Paragraph::new(foot_text), foot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer;
    use ultramarine_status::PeStatus;

    /// On a terminal of any size something is shown.
    #[test]
    fn the_page_fits_any_terminal() {
        let pe = |pe| PeStatus { pe, host: "node".to_owned(), workers: 2, ..PeStatus::default() };
        let pes = (0..100).map(pe).collect();
        let job = JobStatus { program: "prover".to_owned(), pes, ..JobStatus::default() };
        let list = TableState::default().with_selected(0);
        let mut screen = Screen { seen: Seen::new(job), each: Each::Pe, list, trouble: None };
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal");
            terminal.draw(|frame| screen.draw(frame)).expect("it is drawn");
            let shown: String =
                terminal.backend().buffer().content().iter().map(buffer::Cell::symbol).collect();
            let wanted = if width < 20 { "P" } else { "prover" };
            assert!(shown.contains(wanted), "{width} × {height}: {shown}");
        }
    }
}

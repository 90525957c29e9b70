//! Who calls whom in machine code, from what `objdump -d` prints.
//!
//! An edge leads from a function to every symbol that its instructions name, by a call, a jump or an address (a closure is handed on by its
//! address); in object files the relocations name it. Calls through a table of virtual functions are not followed: they name nothing.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

/// Functions by mangled name, and what they name.
#[derive(Default)]
pub(super) struct Graph {
    ids: HashMap<String, u32>,
    names: Vec<String>,
    /// Whether there is code under this name.
    defined: Vec<bool>,
    /// For each function those that name it.
    users: Vec<HashSet<u32>>,
}

impl Graph {
    /// Adds what a disassembly shows.
    ///
    /// # Errors
    /// What reading reports.
    pub(super) fn read(&mut self, mut disassembly: impl BufRead) -> std::io::Result<()> {
        let (mut section, mut current) = (None, None);
        let mut line = Vec::new();
        loop {
            line.clear();
            if disassembly.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            // Most of millions of lines name nothing.
            let names =
                |line: &[u8]| matches!(line.trim_ascii_end().last(), Some(b'>' | b':')) || line.starts_with(b"\t\t");
            if !names(&line) {
                continue;
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("Disassembly of section ") {
                section = of_section(name.trim_end_matches(':')).map(|name| self.id(name));
            } else if let Some(label) = label(line) {
                let id = self.id(base(label));
                self.defined[id as usize] = true;
                current = Some(id);
                // One function a section: others may name it by its section's name, or by its other name (constructors have two).
                if let Some(section) = section {
                    self.edge(section, id);
                }
            } else if let (Some(from), Some(target)) = (current, target(line)) {
                let to = self.id(base(target));
                self.edge(from, to);
            }
        }
    }

    fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        self.defined.push(false);
        self.users.push(HashSet::new());
        id
    }

    fn edge(&mut self, from: u32, to: u32) {
        if from != to {
            self.users[to as usize].insert(from);
        }
    }

    /// All names from which one of `roots` is reached, themselves among them, in order. What `cut` names reaches nothing.
    pub(super) fn reaching(&self, roots: impl Fn(&str) -> bool, cut: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut seen: Vec<bool> = self.names.iter().map(|name| roots(name)).collect();
        let mut open: Vec<u32> = (0..).zip(&seen).filter(|&(_, &root)| root).map(|(id, _)| id).collect();
        while let Some(id) = open.pop() {
            for &user in &self.users[id as usize] {
                if !seen[user as usize] && !cut(&self.names[user as usize]) {
                    seen[user as usize] = true;
                    open.push(user);
                }
            }
        }
        let mut found: Vec<&str> = self.names.iter().zip(&seen).filter(|&(_, &s)| s).map(|(n, _)| n.as_str()).collect();
        found.sort_unstable();
        found
    }

    /// Whether there is code under this name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.ids.get(name).is_some_and(|&id| self.defined[id as usize])
    }

    /// How many functions there is code of.
    pub(super) fn len(&self) -> usize {
        self.defined.iter().filter(|&&defined| defined).count()
    }
}

/// `0000000000001130 <_Zfoo>:`
fn label(line: &str) -> Option<&str> {
    let line = line.strip_suffix(">:")?;
    let (address, name) = line.split_once(" <")?;
    address.bytes().all(|b| b.is_ascii_hexdigit()).then_some(name)
}

/// The symbol that an instruction or a relocation names: `call 98 <_Zfoo@plt>`, `R_X86_64_PLT32  _Zfoo-0x4`.
fn target(line: &str) -> Option<&str> {
    if let Some((_, name)) = line.split_once(": R_") {
        let name = name.split_whitespace().nth(1)?;
        return if name.starts_with('.') { of_section(name) } else { Some(name) };
    }
    let line = line.strip_suffix('>')?;
    line.rsplit_once('<').map(|(_, name)| name)
}

/// The function that has this section to itself.
fn of_section(section: &str) -> Option<&str> {
    let name = section.strip_prefix(".text.")?;
    Some(base(name.strip_prefix("unlikely.").unwrap_or(name)))
}

/// The function's name without what linkers and compilers add: `@plt`, an offset, `.cold`.
fn base(name: &str) -> &str {
    name.split(['@', '+', '-', '.']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::Graph;

    /// A library and an object file as objdump shows them.
    const LIBRARY: &str = "
Disassembly of section .text:

0000000000001000 <_Zeval>:
    1000:\tret
0000000000001010 <_Zitem>:
    1010:\tcall   900 <_Zeval@plt>
0000000000001020 <_Zhanded>:
    1020:\tlea    -0x20(%rip),%rax        # 1010 <_Zitem+0x4>
0000000000001030 <_Zadd>:
    1030:\tjmp    1034 <_Zadd+0x4>
    1034:\tcall   *%rax
";
    const OBJECT: &str = "
Disassembly of section .text.shim$print:

0000000000000000 <shim$print>:
   8:\tcall   d <shim$print+0xd>
\t\t\t9: R_X86_64_PLT32\t_ZN1TC1Ev-0x4

Disassembly of section .text._ZN1TC2Ev:

0000000000000000 <_ZN1TC1Ev>:
   8:\tlea    0x0(%rip),%rdx        # f <_ZN1TC1Ev+0xf>
\t\t\tb: R_X86_64_PC32\t.text._Zlocal-0x4

Disassembly of section .text._Zlocal:

0000000000000000 <_Zlocal>:
\t\t\t9: R_X86_64_PLT32\t_Zhanded-0x4

Disassembly of section .text.shim$sum:

0000000000000000 <shim$sum>:
\t\t\t9: R_X86_64_PLT32\t_Zadd-0x4
";

    fn graph() -> Graph {
        let mut graph = Graph::default();
        for text in [LIBRARY, OBJECT] {
            graph.read(text.as_bytes()).unwrap();
        }
        graph
    }

    #[test]
    fn calls_jumps_and_addresses_lead_to_what_evaluates() {
        let graph = graph();
        let found = graph.reaching(|name| name == "_Zeval", |_| false);
        let wanted = ["_ZN1TC1Ev", "_ZN1TC2Ev", "_Zeval", "_Zhanded", "_Zitem", "_Zlocal", "shim$print"];
        assert_eq!(found, wanted);
    }

    #[test]
    fn nothing_is_reached_through_what_is_cut() {
        let graph = graph();
        assert_eq!(graph.reaching(|name| name == "_Zeval", |name| name == "_Zitem"), ["_Zeval"]);
    }

    #[test]
    fn code_is_told_from_names_that_are_only_called() {
        let mut graph = Graph::default();
        graph.read(OBJECT.as_bytes()).unwrap();
        assert!(graph.defines("shim$sum") && !graph.defines("_Zadd"));
        assert_eq!(graph.len(), 4);
    }
}
